"""An unfinished run whose selecting score ties opens at the checkpoint with the lowest loss, in every command."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from invocation import invoke

import heedful
import reversal
import toy_tasks
from heedful.checkpoint import load_model
from heedful.config.schema import Recipe
from heedful.tasks.task import Results
from heedful.training.trainer import Trainer
from interrupted import stop_after, train

LOSSES = {3: 2.0, 6: 1.0, 9: 3.0, 12: 3.0}  # of the validations: update 6 is the best, and neither first nor last
END = 13  # the update in which the run ends unfinished


@pytest.fixture(params=["translation", "classification"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Recipe:
    if request.param == "translation":
        reversal.write_texts(tmp_path)
        recipe = reversal.recipe(tmp_path)
    else:
        recipe = toy_tasks.recipe(request.param, toy_tasks.write_text(tmp_path))
    return replace(
        recipe, train=replace(recipe.train, max_updates=30, validate_every=3, save_every=3, keep_last=2, patience=None)
    )


@pytest.fixture(params=[0.0, float("nan")])
def tied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every validation have one and the same selecting score."""

    def evaluated(self: Trainer) -> Results:
        others = dict.fromkeys(self.task.spec.metrics, 0.5)
        return Results(others | {self.best_name: request.param, "loss": LOSSES[self.state.update]})

    monkeypatch.setattr(Trainer, "evaluated", evaluated)


class Killed(BaseException):
    """Stands for the end of the process."""


def train_and_kill(settings: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = Trainer.update

    def update_or_die(self):
        if self.state.update + 1 == END:
            raise Killed
        update(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", update_or_die)
        with pytest.raises(Killed):
            train(settings, folder)


def train_and_interrupt(settings: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(END, patch)
        assert train(settings, folder).exit_code == 143


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("tied")
@pytest.mark.parametrize("end", [train_and_kill, train_and_interrupt])
def test_an_unfinished_run_opens_at_the_lowest_loss_of_equal_scores(settings, end, tmp_path, monkeypatch, caplog):
    run, table = tmp_path / "run", tmp_path / "valid.tsv"
    end(settings, run, monkeypatch)
    steps = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
    assert steps[0] == "step-00000006"  # the one of update 3 is deleted
    assert len(steps) > 2
    best = run / "checkpoints" / "step-00000006"
    assert load_model(run).path == best
    wanted = load_model(best).model.state_dict()
    for name, weight in heedful.load(run).model.state_dict().items():
        assert torch.equal(weight, wanted[name]), name
    commands = {
        "translation": [
            ("translate", "--model", run, "--input", tmp_path / "valid.src"),
            ("evaluate", run, "--source", tmp_path / "valid.src", "--reference", tmp_path / "valid.tgt"),
        ],
        "classification": [("predict", "--model", run, "w1 good red"), ("evaluate", run, "--source", table)],
    }[settings.task]
    for command in commands:
        caplog.clear()
        assert invoke(*command).exit_code == 0
        assert "using its best checkpoint, from update 6" in caplog.text
