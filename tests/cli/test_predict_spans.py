"""`heedful predict` with models that tag words or answer questions."""

import json
from pathlib import Path

import pytest
import torch
from invocation import invoke
from torch import nn

from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.models import TokenClassifier, weights
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1)
TOKENIZER = train_tokenizer(["ada saw byron"], TokenizerConfig(kind="word", byte_fallback=False))
TASKS = {"tagging": ("B-a", "I-a"), "span_qa": ()}


@pytest.fixture
def model(tmp_path, request) -> Path:
    """A model for a task that has learned nothing."""
    torch.manual_seed(1)
    recipe = Recipe(task=request.param, model=MODEL, data=DataConfig(max_length=23, labels=TASKS[request.param]))
    network = TokenClassifier(MODEL, len(TOKENIZER), 2)
    nn.init.normal_(network.output.weight)
    write_model(tmp_path / "model", recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(network))
    return tmp_path / "model"


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
def test_words_come_with_their_entities(model):
    lines = invoke("predict", "--model", model, "ada saw", "", "byron!").stdout.splitlines()
    answers = [
        json.loads(line) for line in invoke("predict", "--model", model, "--json", "ada saw").stdout.splitlines()
    ]
    assert [line.replace("/a", "") for line in lines] == ["ada saw", "", "byron !"]
    assert "/a" in lines[0]
    assert answers[0]["words"] == ["ada", "saw"]
    assert set(answers[0]["tags"]) <= {"B-a", "I-a"}
    assert answers[0]["spans"][0].keys() == {"text", "kind", "begin", "end", "probability"}


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
def test_a_pair_for_a_tagger_is_told_with_its_line(model, tmp_path):
    (tmp_path / "lines.txt").write_text("ada saw\nada\tsaw\n")
    with pytest.raises(InputError, match=r"lines\.txt, line 2: 'ada' and 'saw' are a pair; a tagger reads lines"):
        invoke("predict", "--model", model, "--input", tmp_path / "lines.txt")


@pytest.mark.parametrize("model", ["span_qa"], indirect=True)
def test_an_answer_is_cut_from_the_text_behind_the_tab(model):
    asked = "saw ada?\tada saw  byron!"
    (answer,) = map(json.loads, invoke("predict", "--model", model, "--json", stdin=asked).stdout.splitlines())
    assert "ada saw  byron!"[answer["begin"] : answer["end"]] == answer["answer"]
    assert invoke("predict", "--model", model, stdin=asked).stdout == " ".join(answer["answer"].split()) + "\n"
    with pytest.raises(InputError, match="input, line 2: 'saw ada\\?' has no text to find an answer in"):
        invoke("predict", "--model", model, stdin=f"{asked}\nsaw ada?")
