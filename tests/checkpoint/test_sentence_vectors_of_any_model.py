"""Any model of one text gives sentence vectors: the means of its hidden states."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.architectures import LanguageModel, MaskedLanguageModel, TokenClassifier, weights
from heedful.architectures.heads import TextClassifier
from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError
from heedful.predictors.retriever import Retriever
from heedful.text.tokenizer_pair import TokenizerPair
from subjects import BERT_SHAPE, GPT_SHAPE, SHAPE, TOKENIZER, translator

ENCODER = replace(SHAPE, family="encoder")
TEXTS = ["the old dog", "two women read a book .", "the"]
MODELS = {
    "masked_lm": (BERT_SHAPE, lambda: MaskedLanguageModel(BERT_SHAPE, len(TOKENIZER), pairs=True)),
    "language_model": (GPT_SHAPE, lambda: LanguageModel(GPT_SHAPE, len(TOKENIZER))),
    "classification": (ENCODER, lambda: TextClassifier(ENCODER, len(TOKENIZER), 2)),
    "tagging": (ENCODER, lambda: TokenClassifier(ENCODER, len(TOKENIZER), 2)),
}


@pytest.fixture
def folder(tmp_path):
    """A function that writes a model for a task."""

    def written(task: str):
        shape, build = MODELS[task]
        labels = {"classification": ("a", "b"), "tagging": ("O", "B-a")}.get(task, ())
        recipe = Recipe(task=task, model=shape, data=DataConfig(max_length=31, labels=labels))
        write_model(tmp_path / "model", recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(build()))
        return tmp_path / "model"

    return written


@pytest.mark.parametrize("task", MODELS)
@torch.no_grad()
def test_a_vector_is_the_mean_of_the_hidden_states_of_its_text(task, folder, caplog):
    path = folder(task)
    own = heedful.load(path, "cpu")
    with caplog.at_level(logging.WARNING):
        encoder = heedful.load(path, "cpu", task="ranking")
    assert isinstance(encoder, Retriever)
    assert f'was trained for the task "{task}", not for sentence vectors' in caplog.text
    vectors = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        ids = torch.tensor([[2, *TOKENIZER.encode(text), 3]])
        backbone = own.model.get_submodule("backbone")
        mean = backbone(ids, torch.ones_like(ids).bool())[0].mean(0)
        np.testing.assert_allclose(vector, (mean / mean.norm()).numpy(), atol=1e-5)
    assert encoder.search(TEXTS[1], TEXTS, k=1)[0].text == TEXTS[1]
    assert np.array_equal(heedful.load(path, "cpu", task="ranking").encode(TEXTS), vectors)


def test_a_translator_has_no_sentence_vectors(tmp_path):
    subject = translator()
    write_model(tmp_path / "model", Recipe(model=SHAPE), subject.tokenizers, weights(subject.model))
    with pytest.raises(InputError, match='is a translation model; load it with task="translation"'):
        heedful.load(tmp_path / "model", task="ranking")
