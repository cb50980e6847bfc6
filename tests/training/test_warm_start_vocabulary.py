"""Warm start with another vocabulary: what becomes of the tokenizer and the embeddings."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from foreign_folders import write_bert
from heedful.architectures import MaskedLanguageModel, weights
from heedful.checkpoint import write_model
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig
from heedful.tasks.tagging import Tagging
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training.warm_start import copy_start_weights

MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, segments=2)
LINES = ["the cat sat on the mat.", "a man sat in the garden.", "it is the next cafe."] * 3


def word_pieces(lines: list[str]) -> Tokenizer:
    return train_tokenizer(lines, TokenizerConfig(kind="wordpiece", vocab_size=61, byte_fallback=False))


def write_start(folder: Path, tokenizer: Tokenizer) -> dict[str, torch.Tensor]:
    """A masked language model that a run may start from, and its weights."""
    model = MaskedLanguageModel(MODEL, len(tokenizer), pairs=True)
    recipe = Recipe(task="masked_lm", model=MODEL, tokenizer=tokenizer.config)
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(model))
    return weights(model)


@pytest.fixture
def begun(tmp_path):
    """A function that begins a tagger with a model of one vocabulary and gives it another one."""

    def begin(there: Tokenizer, here: Tokenizer):
        old = write_start(tmp_path / "start", there)
        recipe = Recipe(task="tagging", model=MODEL)
        recipe = replace(recipe, data=replace(recipe.data, labels=("O", "B-a", "I-a")))
        recipe = replace(recipe, train=replace(recipe.train, start=str(tmp_path / "start")))
        pair = TokenizerPair(here, here)
        model = Tagging.build(recipe, pair)
        fresh = copy_start_weights(recipe, model, pair)
        assert fresh == ["output.weight", "output.bias"]
        return old, weights(model)

    return begin


@pytest.mark.parametrize("foreign", [False, True], ids=["heedful's", "BERT's"])
def test_with_the_same_vocabulary_the_whole_trunk_is_copied(begun, tmp_path, foreign):
    tokenizer = from_hugging_face(write_bert(tmp_path / "bert"))[0] if foreign else word_pieces(LINES)
    old, new = begun(tokenizer, tokenizer)
    names = [name for name in new if name.startswith("backbone.")]
    assert len(names) > 11
    assert all(torch.equal(old[name], new[name]) for name in names)


def test_with_another_vocabulary_pieces_keep_their_vectors_and_all_else_is_copied(begun):
    there, here = word_pieces(LINES), word_pieces([line.replace("cat", "dog") for line in LINES])
    assert there.digest != here.digest
    old, new = begun(there, here)
    table = "backbone.embedding.weight"
    assert all(torch.equal(old[name], new[name]) for name in new if name.startswith("backbone.") and name != table)
    rows = {piece: row for row, piece in enumerate(there.pieces(range(len(there))))}
    shared = [(rows[piece], row) for row, piece in enumerate(here.pieces(range(len(here)))) if piece in rows]
    assert any(a != b for a, b in shared)
    assert all(torch.equal(old[table][a], new[table][b]) for a, b in shared)
