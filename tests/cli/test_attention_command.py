"""`heedful attention`: an image of one translation, and one message for each mistake."""

import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from invocation import invoke

from heedful import load
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from subjects import SHAPE, TOKENIZER, classifier

pytest.importorskip("matplotlib")

TEXT = "the old dog sees the station ."

run = partial(invoke, "attention")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that knows nothing."""
    torch.manual_seed(1)
    config = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=3)
    tokenizer = train_tokenizer([TEXT, "der alte Hund sieht den Bahnhof ."], TokenizerConfig(vocab_size=307))
    folder = tmp_path_factory.mktemp("attention") / "model"
    recipe = Recipe(model=config, decode=DecodeConfig(beam=2, max_extra=3))
    network = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


def texts_in(svg):
    return [line.strip()[5:-4] for line in svg.read_text(encoding="utf-8").splitlines() if "<!-- " in line]


def test_a_picture_shows_both_sentences_and_what_was_chosen(tmp_path, model):
    out = tmp_path / "a.svg"
    result = run(TEXT, "--model", model, "--out", out, "--target", "der Hund", "--layer", 3, "--head", 2)
    assert result.stdout == "der Hund\n"
    assert result.stderr == f"{out}: Cross-attention, layer 3, head 2\n"
    shown = texts_in(out)
    assert shown[:7] == TEXT.split()
    assert [word for word in shown if word in ("der", "Hund")] == ["der", "Hund"]
    assert "Cross-attention, layer 3, head 2" in shown
    assert f"model {model}" in shown


def test_a_model_that_does_not_translate_is_refused(tmp_path):
    recipe = Recipe(
        task="classification", model=replace(SHAPE, family="encoder"), data=DataConfig(labels=("a", "b", "c"))
    )
    write_model(tmp_path / "model", recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(classifier().model))
    with pytest.raises(InputError, match="is a classification model; use it with `heedful predict`"):
        run(TEXT, "--model", tmp_path / "model", "--out", tmp_path / "a.svg")


def test_by_default_it_draws_what_the_model_translates(tmp_path, model):
    out = tmp_path / "a.png"
    result = run(TEXT, "--model", model, "--out", out)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert result.stdout == f"{load(model, 'cpu').translate([TEXT])[0]}\n"
    assert "mean of 2 heads" in result.stderr


def test_characters_without_a_font_are_named(tmp_path, model):
    result = run(TEXT, "--model", model, "--out", tmp_path / "a.svg", "--target", "der \U0010fffd")
    assert "Words with \\U0010fffd are shown as numbers" in result.stderr


MISTAKES = {
    "the text is empty": [""],
    "the name of an image must end in .png or .svg": [TEXT, "--out", "a.jpeg"],
    "there is no folder": [TEXT, "--out", "nowhere/a.png"],
    "layer 4: the decoder has cross-attention in 3 layers: 1, 2, 3": [TEXT, "--layer", "4"],
    "head 0: the decoder has 2": [TEXT, "--head", "0"],
    'unknown device "abacus"; use auto, cpu': [TEXT, "--device", "abacus"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_one_message(tmp_path, monkeypatch, model, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        run(*MISTAKES[message], "--model", model)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match='no model "nothing"'):
        run(TEXT, "--model", "nothing", "--out", tmp_path / "a.png")


def test_a_picture_that_cannot_be_written_is_a_failure(tmp_path, model):
    (tmp_path / "a.png").symlink_to("nowhere/a.png")
    with pytest.raises(RunError, match="cannot write"):
        run(TEXT, "--model", model, "--out", tmp_path / "a.png")


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "heedful.inspector.plots", raising=False)
    with pytest.raises(InputError, match=r'plots need matplotlib: pip install "heedful\[plot\]"'):
        run(TEXT, "--out", tmp_path / "a.png")
