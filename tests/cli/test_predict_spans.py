"""`heedful predict` with models that tag words or answer questions."""

import json
from pathlib import Path

import pytest
import torch
from invocation import invoke
from torch import nn

from heedful.architectures import TokenClassifier, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1)
TOKENIZER = train_tokenizer(["ada saw byron"], TokenizerConfig(kind="word", byte_fallback=False))
TASKS = {"tagging": ("B-a", "I-a"), "span_qa": ()}
WORDS = {"tagging": ("O'Ada", ".", "U.S."), "span_qa": ()}
SENTENCES = [["O'Ada", "saw", "U.K", "!?"], ["b-c", "."]]


@pytest.fixture
def model(tmp_path, request) -> Path:
    """A model for a task that has learned nothing."""
    torch.manual_seed(1)
    data = DataConfig(max_length=23, labels=TASKS[request.param], words=WORDS[request.param])
    recipe = Recipe(task=request.param, model=MODEL, data=data)
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
    assert invoke("predict", "--model", model, stdin=asked).stdout == answer["answer"] + "\n"
    with pytest.raises(InputError, match="input 2: 'saw ada\\?' is a question without a text"):
        invoke("predict", "--model", model, stdin=f"{asked}\nsaw ada?")


def words_of(result) -> list[list[str]]:
    return [json.loads(line)["words"] for line in result.stdout.splitlines()]


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
def test_a_text_is_cut_as_the_training_data_is(model):
    result = invoke("predict", "--model", model, "--json", "O'Ada saw (U.S.).", "O'Byron's.")
    assert words_of(result) == [["O'Ada", "saw", "(", "U.S.", ")", "."], ["O'Byron", "'", "s", "."]]


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
@pytest.mark.parametrize("line", [" ".join, json.dumps], ids=["spaces", "JSON"])
def test_pretokenized_words_stay_as_they_are(model, tmp_path, line):
    lines = [line(words) for words in SENTENCES]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    arguments = ("predict", "--model", model, "--pretokenized", "--json")
    assert words_of(invoke(*arguments, *lines)) == SENTENCES
    assert words_of(invoke(*arguments, stdin="\n".join(lines))) == SENTENCES
    assert words_of(invoke(*arguments, "--input", tmp_path / "lines.txt")) == SENTENCES


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
@pytest.mark.parametrize("key", [None, "words", "tokens", "mine"])
def test_lists_of_words_in_json_lines_are_words(model, tmp_path, key):
    rows = [json.dumps(words if key is None else {"id": 3, key: words}) for words in SENTENCES]
    (tmp_path / "words.jsonl").write_text("\n".join(rows))
    field = ("--source-field", key) if key == "mine" else ()
    result = invoke("predict", "--model", model, "--json", "--input", tmp_path / "words.jsonl", *field)
    assert words_of(result) == SENTENCES


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
@pytest.mark.parametrize("ending", ["conll", "bio", "iob2"])
def test_the_words_of_a_tagged_file_are_words(model, tmp_path, ending):
    lines = ("".join(f"{word} O\n" for word in words) for words in SENTENCES)
    (tmp_path / f"valid.{ending}").write_text("\n".join(lines))
    result = invoke("predict", "--model", model, "--json", "--input", tmp_path / f"valid.{ending}")
    assert words_of(result) == SENTENCES


@pytest.mark.parametrize("model", ["tagging"], indirect=True)
@pytest.mark.parametrize(
    ("row", "message"), [('["ada", 3]', "line 2: word 2 is 3"), ('{"id": 1}', "line 2: a list of words is missing")]
)
def test_a_line_without_words_is_refused_with_its_number(model, tmp_path, row, message):
    (tmp_path / "words.jsonl").write_text(f'["ada"]\n{row}\n')
    with pytest.raises(InputError, match=message):
        invoke("predict", "--model", model, "--input", tmp_path / "words.jsonl")


@pytest.mark.parametrize("model", ["span_qa"], indirect=True)
def test_only_a_tagger_takes_words(model):
    with pytest.raises(InputError, match="--pretokenized is for taggers"):
        invoke("predict", "--model", model, "--pretokenized", "who?\tada")
