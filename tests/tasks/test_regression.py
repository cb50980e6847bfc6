"""Regression: the unit of the labels changes nothing but the unit of what is reported."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import heedful
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import Recipe
from heedful.data.readers.labelled import read_scored
from heedful.errors import InputError
from heedful.predictors.scorer import Scored, Scorer, Standardisation
from heedful.predictors.text_predictor import Text
from heedful.tasks.regression import Regression
from heedful.training import loop
from heedful.training.logger import LOG, RESULT
from heedful.training.warm_start import copy_start_weights
from interrupted import stop_after, train, train_aloud
from toy_tasks import recipe, write_text

UNITS = {  # a label of the toy text, which is a multiple of 1/4, in each unit
    "similarity from 0 to 5": (0.5, 2.5),
    "prices": (64_000.0, 330_000.0),
    "prices in a small unit": (64e6, 33e7),
    "years": (16.0, 1960.0),
    "a share of a millionth": (2.0**-22, 2.0**-21),
    "negative numbers": (1024.0, -7000.0),
}
TEXTS = [Text("w1 good red good", "w2 good"), Text("bad w3 bad", "bad w2")]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


def in_unit(text: Path, folder: Path, unit: str) -> Path:
    """Copy the toy text with its labels in another unit."""
    scale, mean = UNITS[unit]
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid"):
        rows = [line.split("\t") for line in (text / f"{name}.tsv").read_text().splitlines()]
        lines = ["\t".join([*row[:3], f"{float(row[3]) * scale + mean!r}"]) for row in rows]
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines))
    return folder


def learned(text: Path, folder: Path, **changes: object) -> Path:
    updates = {"max_updates": 40, "batch_tokens": 509, "validate_every": 20, "save_every": 20, "log_every": 10}
    train(recipe("regression", text, model={"dropout": 0.0}, train=updates | changes), folder)
    return folder


def scores(run: Path) -> dict[str, float]:
    return json.loads((run / RESULT).read_text())


def predicted(model: Path) -> list[float]:
    return [answer.score for answer in heedful.load(model, "cpu", as_=Scorer).predict(TEXTS)]


@pytest.fixture(scope="module")
def plain(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the labels as they are."""
    return learned(text, tmp_path_factory.mktemp("plain") / "run")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", UNITS)
def test_numbers_in_any_unit_are_learned_alike_and_reported_in_their_unit(unit, text, plain, tmp_path):
    scale, mean = UNITS[unit]
    run = learned(in_unit(text, tmp_path / "text", unit), tmp_path / "run")
    one, other = scores(plain), scores(run)
    assert one["spearman"] > 0.5
    assert abs(other["spearman"] - one["spearman"]) < 0.03
    assert other["rmse"] == pytest.approx(one["rmse"] * scale, rel=0.03)
    assert other["loss"] == pytest.approx(one["loss"] * scale**2, rel=0.06)
    spread = scale * np.std([example.score for example in labels(plain)])
    assert predicted(run) == pytest.approx([x * scale + mean for x in predicted(plain)], abs=0.1 * spread)
    assert losses(run) == pytest.approx([loss * scale**2 for loss in losses(plain)], rel=0.06)


def labels(run: Path) -> list:
    data = load_model(run).recipe.data
    return list(read_scored(data.train[0], data))


def losses(run: Path) -> list[float]:
    records = map(json.loads, (run / LOG).read_text().splitlines())
    return [record["loss"] for record in records if "loss" in record]


def test_mean_and_scale_of_the_training_labels_are_stored_with_the_model(plain, text):
    data = load_model(plain).recipe.data
    numbers = np.array([example.score for example in labels(plain)])
    assert (data.label_mean, data.label_scale) == pytest.approx((numbers.mean(), numbers.std()), rel=1e-6)


def test_a_test_set_of_another_range_is_scored_by_the_scale_of_training(text, plain, tmp_path):
    in_unit(text, tmp_path / "far", "prices")
    loaded = load_model(plain)
    test = replace(loaded.recipe.data.train[0], source="valid.tsv")
    data = replace(loaded.recipe.data, root=str(tmp_path / "far"), test=test)
    far = loaded.test(data, lambda _: None)
    examples = list(read_scored(test, data))
    answers = loaded.use_as(Scorer).predict([Text(example.text, example.pair) for example in examples])
    errors = [answer.score - example.score for answer, example in zip(answers, examples, strict=True)]
    assert far["rmse"] == pytest.approx(np.mean(np.square(errors)) ** 0.5, rel=1e-4)


def test_equal_labels_have_nothing_to_divide_by():
    assert Standardisation.of_labels([0.1, 0.1, 0.1]) == Standardisation(float(np.float32(0.1)), 1.0)
    assert Standardisation.of_labels([7.0]) == Standardisation(7.0, 1.0)


@pytest.mark.parametrize("number", [3.0, 1e-5, -4e5])
def test_what_is_standardised_is_restored(number):
    labels = Standardisation(2.5, 1e4)
    assert labels.restored(labels.standardised(number)) == pytest.approx(number, rel=1e-9, abs=1e-9)


def test_small_numbers_are_written_with_their_digits():
    assert [str(Scored(score)) for score in (3.25, 308123.5, 0.00004321, -1e-9)] == [
        "3.2500",
        "308123.5000",
        "4.321e-05",
        "-1e-09",
    ]


def raw(settings: Recipe) -> Recipe:
    return replace(settings, data=replace(settings.data, label_mean=0.0, label_scale=1.0))


def test_a_model_of_an_older_version_predicts_the_numbers_as_it_learned_them(text, tmp_path):
    settings = raw(recipe("regression", text))
    train(settings, tmp_path / "run")
    before = predicted(tmp_path / "run")
    new = load_model(tmp_path / "run")
    older = replace(new.recipe, data=replace(new.recipe.data, label_mean=None, label_scale=None))
    write_model(tmp_path / "old", older, new.tokenizers, weights(new.model))
    loaded = load_model(tmp_path / "old")
    assert (loaded.recipe.data.label_mean, loaded.recipe.data.label_scale) == (0.0, 1.0)
    assert predicted(tmp_path / "old") == before


def test_a_run_resumes_with_the_scale_with_which_it_was_begun(text, tmp_path, monkeypatch):
    begun = raw(recipe("regression", text))
    train(begun, tmp_path / "whole")
    with monkeypatch.context() as interrupted:
        stop_after(5, interrupted)
        train(begun, tmp_path / "parts")
    _, screen = train_aloud(recipe("regression", text), tmp_path / "parts")
    assert "the run resumes with data.label_mean = 0.0 and data.label_scale = 1.0, its original values" in screen
    whole, parts = (weights(load_model(tmp_path / name).model) for name in ("whole", "parts"))
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())


@pytest.mark.parametrize("unit", UNITS)
def test_finetuning_on_another_scale_begins_with_predictions_of_that_scale(unit, text, plain, tmp_path):
    folder = in_unit(text, tmp_path / "text", unit)
    scale, mean = UNITS[unit]
    settings = recipe("regression", folder, model={"dropout": 0.0}, train={"start": str(plain)})
    task = Regression.prepare(settings, tmp_path / "data", lambda _: None)
    model = task.build(task.recipe, load_model(plain).tokenizers)
    fresh = copy_start_weights(task.recipe, model, task.tokenizers)
    assert fresh == []
    began = Regression.use(model.eval(), task.recipe, task.tokenizers).predict(TEXTS)
    assert [x.score for x in began] == pytest.approx([x * scale + mean for x in predicted(plain)], rel=1e-4)


def test_finetuning_from_raw_numbers_begins_with_the_same_predictions(text, tmp_path):
    train(raw(recipe("regression", text)), tmp_path / "old")
    settings = recipe("regression", text, train={"start": str(tmp_path / "old")})
    task = Regression.prepare(settings, tmp_path / "data", lambda _: None)
    assert task.recipe.data.label_scale != 1.0
    model = task.build(task.recipe, task.tokenizers).eval()
    assert copy_start_weights(task.recipe, model, task.tokenizers) == []
    began = Regression.use(model, task.recipe, task.tokenizers).predict(TEXTS)
    assert [answer.score for answer in began] == pytest.approx(predicted(tmp_path / "old"), abs=1e-5)


def test_a_scale_that_is_given_is_kept(text, tmp_path):
    settings = recipe("regression", text, data={"label_mean": 1.0, "label_scale": 2.0})
    loop.train(settings, tmp_path / "run", Console(quiet=True))
    data = load_model(tmp_path / "run").recipe.data
    assert (data.label_mean, data.label_scale) == (1.0, 2.0)


@pytest.mark.parametrize(
    "given",
    [{"label_scale": 2.0}, {"label_mean": 2.0}, {"label_mean": 1.0, "label_scale": 0.0}, {"label_mean": float("inf")}],
)
def test_half_a_scale_or_one_that_divides_by_zero_is_refused(given, text):
    with pytest.raises(InputError, match=r"give both, or leave both out|finite"):
        recipe("regression", text, data=given)
