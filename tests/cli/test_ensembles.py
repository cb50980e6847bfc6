"""Several models as an ensemble: `heedful.load` with a list, and commands with --model more than once."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from invocation import invoke

import heedful
from heedful.architectures import LanguageModel, weights
from heedful.architectures.backbone import model_class
from heedful.architectures.heads import TextClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.checkpoint import load_model, write_model
from heedful.checkpoint.ensemble import reject_other_input
from heedful.config.schema import CorpusConfig, DataConfig, DecodeConfig, GenerateConfig, Recipe
from heedful.errors import InputError
from heedful.inspector.page import view
from heedful.metrics import Scoring, score
from heedful.predictors.retriever import Retriever
from heedful.server.engine import Engine
from heedful.text.tokenizer_pair import TokenizerPair
from subjects import SHAPE, TOKENIZER

LINES = ["the old dog", "two women read a book .", "", "the station", "a book ."]
TRANSLATOR = replace(SHAPE, decoder_layers=1)
RECURRENT = RecurrentConfig(d_model=14, layers=1)
GPT = replace(SHAPE, family="decoder", decoder_layers=1)


def write(folder: Path, seed: int, recipe: Recipe, build, tokenizer=TOKENIZER) -> Path:
    torch.manual_seed(seed)
    model = build(recipe.model, len(tokenizer))
    torch.nn.init.normal_(model.output.weight, std=1.0)
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(model))
    return folder


def translator(config, vocabulary):
    return model_class(config)(config, vocabulary, vocabulary)


@pytest.fixture
def place(tmp_path):
    """Two translators of different architectures, two language models, a classifier, and a test set."""
    decode = DecodeConfig(beam=2, max_extra=4)
    for name, lines in (("lines.en", LINES), ("lines.de", LINES[::-1])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    write(tmp_path / "transformer", 1, Recipe(model=TRANSLATOR, decode=decode), translator)
    write(tmp_path / "gru", 2, Recipe(model=RECURRENT, decode=replace(decode, beam=1)), translator)
    for seed in (3, 4):
        data = DataConfig(max_length=9, root=str(tmp_path), test=CorpusConfig(source="lines.en"))
        recipe = Recipe(task="language_model", model=GPT, data=data, generate=GenerateConfig(max_tokens=5))
        write(tmp_path / f"gpt{seed}", seed, recipe, LanguageModel)
    recipe = Recipe(task="classification", model=replace(SHAPE, family="encoder"), data=DataConfig(labels=("a", "b")))
    write(tmp_path / "classifier", 5, recipe, lambda config, size: TextClassifier(config, size, 2))
    return tmp_path


@pytest.fixture
def run(place, monkeypatch):
    monkeypatch.chdir(place)
    return invoke


TWO = ["--model", "transformer", "--model", "gru"]


def test_translate_writes_what_the_ensemble_in_python_writes(place, run):
    together = heedful.load([place / "transformer", place / "gru"])
    assert together.config.beam == 2  # the settings of the first model
    result = run("translate", *TWO, "--input", "lines.en", "--no-literals")
    assert result.stdout.splitlines() == together.translate(LINES)
    assert together.translate(LINES) != heedful.load(place / "transformer").translate(LINES)


def test_an_ensemble_of_one_model_is_that_model(place):
    assert heedful.load([place / "gru"]).translate(LINES) == heedful.load(place / "gru").translate(LINES)


def test_a_folder_is_translated_by_an_ensemble_and_by_no_other_one_afterwards(place, run):
    (place / "in").mkdir()
    (place / "in/lines").write_text((place / "lines.en").read_text())
    assert run("translate", *TWO, "--input", "in", "--output", "out").exit_code == 0
    alone = run("translate", *TWO, "--input", "lines.en")
    assert (place / "out/lines").read_text() == alone.stdout
    with pytest.raises(InputError, match="model"):
        run("translate", "--model", "transformer", "--input", "in", "--output", "out")


def test_evaluate_scores_the_translations_of_the_ensemble(place, run):
    options = ["--source", "lines.en", "--reference", "lines.de", "--metrics", "chrf", "--json"]
    facts = json.loads(run("evaluate", "transformer", "--model", "gru", *options).stdout)
    outputs = heedful.load([place / "transformer", place / "gru"]).translate(LINES)
    [expected] = score(outputs, [LINES[::-1]], Scoring(metrics=("chrf",)))
    assert facts["ensemble"] == ["transformer", "gru"]
    assert facts["scores"][0]["value"] == pytest.approx(expected.value)
    assert json.loads(run("evaluate", *TWO, *options).stdout) == facts  # all models as options


def test_an_ensemble_is_compared_with_one_of_its_models(run):
    options = ["--source", "lines.en", "--reference", "lines.de", "--metrics", "chrf", "--against", "transformer"]
    result = run("evaluate", "transformer", "--model", "gru", *options)
    assert "transformer and gru" in result.stdout


def test_generate_writes_what_the_ensemble_in_python_writes(place, run):
    together = heedful.load([place / "gpt3", place / "gpt4"])
    options = ["--input", "lines.en", "--temperature", "0", "--json"]
    result = run("generate", "--model", "gpt3", "--model", "gpt4", *options)
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()]
    assert texts == [answer.text for answer in together.generate(LINES, temperature=0)]


def test_evaluate_computes_the_perplexity_of_an_ensemble_of_language_models(place, run):
    facts = json.loads(run("evaluate", "gpt3", "--model", "gpt4", "--json").stdout)
    alone = [json.loads(run("evaluate", name, "--json").stdout)["scores"]["loss"] for name in ("gpt3", "gpt4")]
    # The logarithm of a mean is at least the mean of logarithms, and the mean is at least half of each.
    assert min(alone) - torch.log(torch.tensor(2.0)) < facts["scores"]["loss"] < sum(alone) / 2
    assert facts["system"] == "gpt3 and gpt4"


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["transformer", "gpt3"], "gpt3 is a language model, but transformer is a translation model"),
        (["classifier", "classifier"], "an ensemble needs models that write text; give a single model"),
        (["gpt3", "classifier"], "classifier is a classification model, but gpt3 is a language model"),
        (["transformer", "missing"], "missing"),
        ([], "an ensemble needs at least one model"),
        (["transformer", 3], r"3 \(int\) cannot be loaded"),
    ],
)
def test_models_that_do_not_belong_together_are_rejected_by_name(models, message, place, monkeypatch):
    monkeypatch.chdir(place)
    with pytest.raises(InputError, match=message):
        heedful.load(models)


def test_models_with_different_tokenizers_are_rejected(place, run):
    from heedful.config.schema import TokenizerConfig
    from heedful.text.training import train_tokenizer

    other = train_tokenizer(["another text"], TokenizerConfig(vocab_size=len(TOKENIZER)))
    write(place / "other", 6, Recipe(model=TRANSLATOR), translator, other)
    with pytest.raises(InputError, match="other and transformer have different tokenizers"):
        run("translate", "--model", "transformer", "--model", "other", "the dog")


@pytest.mark.parametrize(
    ("table", "key", "value"), [("image", "patch", 8), ("image", "mean", (0.1,)), ("audio", "mels", 40)]
)
def test_models_that_read_files_differently_are_rejected(table, key, value, place):
    first, second = load_model(place / "transformer"), load_model(place / "gru")
    reject_other_input(first, second)
    recipe = second.recipe
    other = replace(second, recipe=replace(recipe, **{table: replace(getattr(recipe, table), **{key: value})}))
    with pytest.raises(InputError, match=rf"gru has {table}\.{key} = .* must read the same input"):
        reject_other_input(first, other)


@pytest.mark.parametrize("options", [{"engine": "ctranslate2"}, {"engine": "auto", "precision": "int8"}])
def test_an_ensemble_cannot_be_run_with_ctranslate2(options, place):
    with pytest.raises(InputError, match="an ensemble: must be a single model"):
        heedful.load([place / "transformer", place / "gru"], **options)


def test_the_inspector_shows_the_outputs_of_an_ensemble(place, run, monkeypatch):
    views = [heedful.look([place / "transformer", place / "gru"], "the old dog")]
    monkeypatch.setattr("heedful.inspector.page.view", lambda *args: views.append(view(*args)) or views[-1])
    run("inspect", "transformer", "the old dog", "--model", "gru", "--out", "page.html")
    ensemble = heedful.load(["transformer", "gru"])
    logits = heedful.trace(ensemble, "the old dog")["logits"]
    assert views[-1].name == "transformer and gru"
    for each in views:
        assert each.inspection.answers[0].options[0].text == ensemble.translate("the old dog")
        assert np.array_equal(each.trace["logits"], logits)
    assert Engine.load([["transformer", "gru"], ["gpt3"]]).models.keys() == {"transformer and gru", "gpt3"}


def test_an_ensemble_has_no_sentence_vectors(place):
    with pytest.raises(InputError, match="language model"):
        heedful.load([place / "gpt3", place / "gpt4"], as_=Retriever)
