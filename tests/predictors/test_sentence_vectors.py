"""A BERT of Hugging Face, converted, gives texts the vectors that sentence-transformers computes from it."""

import numpy as np
import pytest
import torch

import foreign_models
import heedful
from foreign_folders import TEXTS
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.convert import FORMATS

transformers = pytest.importorskip("transformers")


@torch.inference_mode()
def test_a_converted_model_encodes_as_mean_pooling_of_the_original_does(tmp_path):
    original = foreign_models.bert(tmp_path / "theirs", "BertModel")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    converted = FORMATS["bert"].read(tmp_path / "theirs", "ranking")
    write_model(tmp_path / "ours", converted.recipe, converted.tokenizers, converted.weights)
    texts = [text for text in TEXTS if text.strip()]
    inputs = tokenizer(texts, padding=True, truncation=True, max_length=53, return_tensors="pt")
    mask = inputs["attention_mask"][:, :, None]
    mean = (original(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)
    searcher = heedful.load(tmp_path / "ours", "cpu")
    expected = (mean / mean.norm(dim=1, keepdim=True)).numpy()
    np.testing.assert_allclose(searcher.encode(texts), expected, atol=1e-5)
    assert set(weights(searcher.reader.model)) == set(converted.weights)
