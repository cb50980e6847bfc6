"""The best validation, early stopping, and a model that does not learn: one line with the remedy."""

import json
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from every_task import RECIPES
from heedful.config.rules import WITH_CLASSES
from heedful.config.schema import OptimizerConfig, Recipe
from heedful.metrics.classes import report_of_matrix
from heedful.training.improvement import (
    SMALL_NORM,
    UPDATES,
    VALIDATIONS,
    WarningSigns,
    best_of,
    flat_score_warning,
    record_validation,
)
from heedful.training.loop import train
from heedful.training.trainer_state import TrainerState
from interrupted import stop_after

RECIPE = Recipe(optimizer=OptimizerConfig(lr=1e-9, warmup=41))
ALL_ALIKE = report_of_matrix(np.array([[9, 0], [7, 0]]), ("ant", "bee"))
MIXED = report_of_matrix(np.array([[9, 0], [6, 1]]), ("ant", "bee"))


def said(signs: WarningSigns, losses: list[float], norms: list[float]) -> list[str]:
    return [line for pair in zip(losses, norms, strict=True) if (line := signs.after_update(*pair))]


def test_a_gradient_of_nearly_nothing_is_said_once():
    losses = [0.7 + 0.01 * (i % 3) for i in range(40)]
    [line] = said(WarningSigns(RECIPE), losses, [SMALL_NORM / 2] * 40)
    assert "the gradient norm has been below 1e-06 in the last 10 updates, but the loss is 0.7" in line
    assert "train.freeze" in line


def test_a_constant_loss_is_said_once_with_the_learning_rate():
    [line] = said(WarningSigns(RECIPE), [0.693147] * 40, [0.3] * 40)
    assert line.startswith(
        "the loss has been 0.6931 in the last 11 updates: the model is not learning. Raise optimizer.lr (now 1e-09)"
    )


@pytest.mark.parametrize(
    ("losses", "norms"),
    [
        ([1 / (1 + i) for i in range(40)], [0.3] * 40),  # it falls
        ([1e-4] * 40, [1e-9] * 40),  # all is learned
        ([0.7 + 0.01 * (i % 3) for i in range(40)], [1e-9] * (UPDATES - 1) + [0.1] * (41 - UPDATES)),  # a short pause
    ],
)
def test_nothing_is_said_of_a_model_that_learns(losses, norms):
    assert said(WarningSigns(RECIPE), losses, norms) == []


def test_a_loss_that_is_the_same_in_all_validations_is_said_once():
    signs = WarningSigns(RECIPE)
    lines = [signs.after_validation({"loss": 0.5 + 1e-5 * i}, None) for i in range(VALIDATIONS + 3)]
    assert list(map(len, lines)) == [0] * (VALIDATIONS - 1) + [1] + [0] * 3
    assert "the loss on the validation set has been 0.5" in lines[VALIDATIONS - 1][0]


@pytest.mark.parametrize("losses", [[0.5, 0.4, 0.4, 0.4, 0.4], [0.001] * 5, [float("nan")] * 5])
def test_a_loss_that_fell_or_is_small_is_no_sign(losses):
    signs = WarningSigns(RECIPE)
    assert [signs.after_validation({"loss": loss}, None) for loss in losses] == [[]] * 5


def test_one_class_for_all_is_said_of_two_validations_or_the_last_one():
    signs = WarningSigns(RECIPE)
    reports = [ALL_ALIKE, MIXED, ALL_ALIKE, ALL_ALIKE]
    lines = [signs.after_validation({"loss": 1 / (1 + i)}, report) for i, report in enumerate(reports)]
    assert lines[:3] == [[]] * 3
    assert "the model predicts 'ant' for all 16 examples of the validation set" in lines[3][0]
    assert 'train.class_weights = "balanced"' in lines[3][0]
    assert [signs.watch.alike] == lines[3]
    once = WarningSigns(RECIPE)
    assert once.after_validation({"loss": 0.5}, ALL_ALIKE) == []
    assert [once.watch.alike] == lines[3]
    once.after_validation({"loss": 0.4}, MIXED)
    assert once.watch.alike is None


def output_of(recipe: Recipe, folder: Path) -> str:
    stream = StringIO()
    train(recipe, folder, Console(file=stream, width=1000))
    return stream.getvalue()


@pytest.mark.parametrize("task", WITH_CLASSES)
def test_a_run_with_a_learning_rate_of_nearly_nothing_says_so(task, tmp_path):
    (tmp_path / "data").mkdir()
    recipe = RECIPES[task](tmp_path / "data")
    recipe = replace(
        recipe,
        optimizer=replace(recipe.optimizer, lr=1e-12),
        train=replace(recipe.train, max_updates=6, validate_every=2, save_every=6, threads=torch.get_num_threads()),
    )
    output = output_of(recipe, tmp_path / "run")
    assert output.count("the loss on the validation set has been") == 1
    assert "the model is not learning. Raise optimizer.lr (now 1e-12)" in output


def resumed(signs: WarningSigns) -> WarningSigns:
    """What watches a run that is resumed from a checkpoint."""
    saved = json.dumps(TrainerState(watch=signs.watch).to_json(), allow_nan=False)
    return WarningSigns(RECIPE, TrainerState.from_json(json.loads(saved)).watch)


@pytest.mark.parametrize("sign", ["small gradient", "constant loss"])
def test_a_run_that_is_resumed_after_any_update_says_the_same_once(sign):
    losses = [0.7 + 0.01 * (i % 3) for i in range(40)] if sign == "small gradient" else [0.693147] * 40
    norms = [SMALL_NORM / 2 if sign == "small gradient" else 0.3] * 40
    whole = said(WarningSigns(RECIPE), losses, norms)
    assert len(whole) == 1
    for stop in range(40):
        first = WarningSigns(RECIPE)
        lines = said(first, losses[:stop], norms[:stop])
        assert [*lines, *said(resumed(first), losses[stop:], norms[stop:])] == whole


@pytest.mark.parametrize("classes", [[None] * 6, [MIXED, ALL_ALIKE, ALL_ALIKE, MIXED, ALL_ALIKE, ALL_ALIKE]])
@pytest.mark.parametrize("losses", [[0.5] * 6, [0.5, math.nan, 0.5, 0.5, 0.5, 0.5], [0.5, 0.4, 0.4, 0.4, 0.4, 0.4]])
def test_a_run_that_is_resumed_after_any_validation_says_the_same(losses, classes):
    signs, resuming = WarningSigns(RECIPE), WarningSigns(RECIPE)
    for loss, report in zip(losses, classes, strict=True):
        resuming = resumed(resuming)
        assert resuming.after_validation({"loss": loss}, report) == signs.after_validation({"loss": loss}, report)
        assert resumed(resuming).watch.alike == signs.watch.alike


@pytest.mark.parametrize("damage", [{"small": "x"}, {"loss": "x"}, {"validations": 3}, {"alike": 1}, {"more": 1}])
def test_a_damaged_memory_of_signs_is_refused(damage):
    state = TrainerState().to_json()
    with pytest.raises(ValueError, match=r"watch is|its entries are not"):
        TrainerState.from_json(state | {"watch": state["watch"] | damage})


def test_a_run_of_an_older_version_begins_to_watch():
    state = TrainerState(update=7).to_json()
    older = {name: value for name, value in state.items() if name not in ("watch", "remarks")}
    assert TrainerState.from_json(older) == TrainerState(update=7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stops", [[3], [5], [7], [2, 4, 6]])
def test_a_run_that_is_interrupted_makes_each_remark_once_as_a_whole_run_does(stops, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    recipe = RECIPES["classification"](tmp_path / "data")
    write_rows(tmp_path / "data" / "train.tsv", 20, 20)
    write_rows(tmp_path / "data" / "valid.tsv", 5, 5)
    train_settings = replace(recipe.train, max_updates=10, validate_every=2, save_every=10, threads=1)
    recipe = replace(recipe, optimizer=replace(recipe.optimizer, lr=1e-12), train=train_settings)
    whole = output_of(recipe, tmp_path / "whole")
    parts = ""
    for stop in stops:
        with monkeypatch.context() as patch:
            stop_after(stop, patch)
            parts += output_of(recipe, tmp_path / "parts")
    parts += output_of(recipe, tmp_path / "parts")
    for sign in ("the loss on the validation set has been", "does not show which checkpoint"):
        assert (whole.count(sign), parts.count(sign)) == (1, 1), sign


def write_rows(path: Path, rare: int, usual: int, lacking: int = 0) -> None:
    rows = [("rare", rare), ("usual", usual), ("third", lacking)]
    lines = [f"w{i % 7} w{i % 5} {label}x\t{label}\n" for label, count in rows for i in range(count)]
    path.write_text("".join(lines))


@pytest.mark.parametrize(("rare", "dominates"), [(17, True), (60, False)])
def test_a_class_that_dominates_is_said_at_the_start_of_training(tmp_path, rare, dominates):
    (tmp_path / "data").mkdir()
    recipe = RECIPES["classification"](tmp_path / "data")
    write_rows(tmp_path / "data" / "train.tsv", rare, 83, lacking=1)
    write_rows(tmp_path / "data" / "valid.tsv", 5, 20)
    recipe = replace(recipe, train=replace(recipe.train, max_updates=1))
    output = output_of(recipe, tmp_path / "run")
    assert ("82% of the examples belong to class 'usual'" in output) == dominates
    assert ('set train.class_weights = "balanced"' in output) == dominates
    assert "the validation set has no examples of third: its scores do not show how well they are recognised" in output


def after(validations, name="accuracy"):
    """The state after validations of a score and a loss, ten updates apart."""
    state = TrainerState()
    for value, loss in validations:
        state.update += 10
        record_validation(state, {"accuracy": value, "loss": loss}, name)
    return state


@pytest.mark.parametrize("value", [0.0, 0.83, math.nan])
def test_equal_scores_are_decided_by_the_loss(value):
    state = after([(value, 4.0), (value, 2.0), (value, 3.0)])
    assert best_of(state, "accuracy").step == 20


@pytest.mark.parametrize("value", [0.0, 0.83, math.nan])
def test_patience_does_not_count_validations_in_which_the_loss_falls(value):
    falling = [(value, 4.0 - 0.1 * number) for number in range(9)]
    assert after(falling).worse < 2
    assert after([*falling, (value, 4.0), (value, 4.0)]).worse >= 2


def test_a_better_score_wins_over_a_lower_loss():
    state = after([(0.5, 3.0), (0.6, 4.0), (0.5, 2.0)])
    assert (best_of(state, "accuracy").step, state.worse) == (20, 0)


def test_a_finite_score_is_better_than_none():
    assert best_of(after([(math.nan, 1.0), (0.1, 2.0)]), "accuracy").step == 20


def test_without_a_finite_number_nothing_is_the_best():
    assert best_of(after([(math.nan, math.nan)]), "accuracy") is None


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ([0.0, 0.0, 0.0], "accuracy has been 0 in the last 3"),
        ([0.2, 0.83, 0.83, 0.83], "accuracy has been 0.83"),
        ([math.nan], "not finite"),
        ([0.0, 0.0], None),
        ([0.1, 0.2, 0.1], None),
    ],
)
def test_a_score_that_says_nothing_is_reported_with_a_remedy(values, part):
    line = flat_score_warning(
        after([(value, 1.0) for value in values]), {"accuracy": values[-1], "loss": 1.0}, "accuracy"
    )
    if part is None:
        assert line is None
    else:
        assert line is not None
        assert part in line
        assert 'train.best = "loss"' in line


def test_a_resumed_run_remembers_the_losses():
    state = after([(0.0, 4.0), (0.0, 3.0)])
    assert TrainerState.from_json(state.to_json()) == state
