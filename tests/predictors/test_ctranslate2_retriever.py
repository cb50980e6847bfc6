"""CTranslate2 as the engine of sentence vectors: those of torch, which is not imported."""

import json
import logging

import numpy as np
import pytest

import heedful
from engine_models import LINES, WORDS, run_without_torch, write_random_model
from heedful.architectures.heads import POOLINGS
from heedful.errors import InputError
from heedful.predictors import ctranslate2_retriever
from heedful.predictors.retriever import Retriever
from heedful.storage.complete_folder import ENGINES

pytest.importorskip("ctranslate2")

TEXTS = [*LINES, "", " ".join(WORDS * 2)]  # the last one is cut
SHAPES = {
    "of the paper": {},
    "BERT": {"positions": "learned", "max_positions": 12, "segments": 2, "pooling": "first", "embedding_norm": True},
    "of init": {"norm": "pre", "positions": "rotary", "pooling": "max"},
    "relative positions": {"positions": "relative", "pooling": "last"},
    "RMSNorm": {"normalization": "rms", "pooling": "sum"},
}


def write_encoder(folder, task="ranking", **settings):
    model = {"family": "encoder", "encoder_layers": 2, **settings}
    return write_random_model(folder, task, model, data={"max_length": 10})


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_are_those_of_torch(shape, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ctranslate2_retriever, "BATCH_TOKENS", 40)
    folder = write_encoder(tmp_path / "m", **SHAPES[shape])
    counts = []
    ours, theirs = (heedful.load(folder, engine=engine) for engine in ("torch", "ctranslate2"))
    with caplog.at_level(logging.WARNING):
        vectors = theirs.encode(TEXTS, counts.append)
    assert "texts are truncated to the 10 tokens" in caplog.text
    assert (vectors.dtype, sum(counts)) == (np.float32, len(TEXTS))
    np.testing.assert_allclose(vectors, ours.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(theirs.encode("two"), ours.encode("two"), atol=1e-5)
    assert theirs.search("one two", TEXTS, k=1)[0].text == "one two"


def test_every_pooling_is_computed():
    assert ctranslate2_retriever.POOLINGS.keys() == POOLINGS.keys()


def test_a_bert_gives_the_means_of_its_hidden_states_with_the_same_warning(tmp_path, caplog):
    folder = write_encoder(tmp_path / "m", "masked_lm", segments=2)
    vectors, warnings = [], []
    for engine in ("torch", "ctranslate2"):
        caplog.clear()
        vectors.append(heedful.load(folder, as_=Retriever, engine=engine).encode(LINES))
        warnings.append(caplog.text)
    np.testing.assert_allclose(*vectors, atol=1e-5)
    assert warnings[0] == warnings[1]
    assert 'was trained for the task "masked_lm", not for sentence vectors' in warnings[0]
    assert not isinstance(heedful.load(folder, engine="auto"), Retriever)


def test_a_causal_encoder_is_left_to_torch(tmp_path):
    folder = write_random_model(tmp_path / "m", "ranking", {"family": "decoder", "decoder_layers": 1})
    with pytest.raises(InputError, match=r'model\.family = "decoder": must be "encoder"'):
        heedful.load(folder, engine="ctranslate2")
    assert isinstance(heedful.load(folder, engine="auto"), Retriever)
    assert not (folder / ENGINES).exists()


def test_the_command_imports_no_torch(tmp_path):
    folder = write_encoder(tmp_path / "m")
    expected = heedful.load(folder, engine="ctranslate2").encode(["one two", "three"])
    answers = run_without_torch("encode", "--model", folder, lines="one two\nthree\n")
    np.testing.assert_allclose([json.loads(line) for line in answers], expected, atol=1e-6)
