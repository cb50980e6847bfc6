"""`heedful evaluate` with both engines: the same scores."""

import json

import pytest
from invocation import invoke

from engine_models import LINES, write_random_model
from heedful.errors import InputError
from heedful.predictors.ctranslate2_generator import DecoderOnly
from heedful.predictors.ctranslate2_translator import EncoderDecoder

pytest.importorskip("ctranslate2")

GPT = {"family": "decoder", "decoder_layers": 2, "norm": "pre", "positions": "rotary"}
PAIRS = {"encoder_layers": 1, "decoder_layers": 1, "output_bias": True, "tie": "none"}
METHODS = {"language_model": (DecoderOnly, "score"), "text_to_text": (EncoderDecoder, "search")}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in {"source": LINES, "target": LINES[::-1]}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.mark.parametrize("task", METHODS)
def test_scores_are_those_of_torch(task, texts, tmp_path, monkeypatch):
    model, eos = (GPT, 0.0) if task == "language_model" else (PAIRS, 1.5)
    tables = {"data": {"max_length": 12}, "train": {"label_smoothing": 0.0 if task == "language_model" else 0.1}}
    folder = write_random_model(tmp_path / "m", task, model, eos, **tables)
    options = ["--source", texts / "source", "--json", "--device", "cpu"]
    options += [] if task == "language_model" else ["--reference", texts / "target", "--beam", "1"]
    owner, method = METHODS[task]
    honest, calls = getattr(owner, method), []
    monkeypatch.setattr(owner, method, lambda *given, **named: calls.append(method) or honest(*given, **named))
    ours, theirs = (
        json.loads(invoke("evaluate", folder, *options, "--engine", engine).stdout)["scores"]
        for engine in ("torch", "auto")
    )
    assert calls  # of CTranslate2
    assert theirs == pytest.approx(ours, rel=1e-5)


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"data": {"cross_documents": False}}, r"data\.cross_documents = false: must be true"),
        ({"train": {"label_smoothing": 0.1}}, r"train\.label_smoothing = 0\.1: must be 0"),
    ],
)
def test_a_loss_that_ctranslate2_does_not_compute_is_refused(tables, problem, texts, tmp_path):
    folder = write_random_model(tmp_path / "m", "language_model", GPT, **tables)
    with pytest.raises(InputError, match=problem):
        invoke("evaluate", folder, "--source", texts / "source", "--engine", "ctranslate2")
    assert invoke("evaluate", folder, "--source", texts / "source").exit_code == 0
