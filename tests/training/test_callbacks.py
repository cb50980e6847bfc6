"""Callbacks are called in time, change nothing, and may fail without harm to the run."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import heedful
from heedful.config.load import recipe_to_dict
from heedful.distributed.launch import launch
from heedful.errors import InputError
from heedful.training.callbacks import Callback, Callbacks, TrainingEvent
from heedful.training.logger import final_scores
from reversal import fingerprint, recipe

QUIET = Console(quiet=True)
SHORT = {"max_updates": 7, "validate_every": 3, "save_every": 2, "log_every": 1, "average_last": 1}


class Notes(Callback):
    """Notes what it is called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, TrainingEvent]] = []

    def on_update(self, event: TrainingEvent) -> None:
        self.seen.append(("update", event))

    def on_validation(self, event: TrainingEvent) -> None:
        self.seen.append(("validation", event))

    def on_end(self, event: TrainingEvent) -> None:
        self.seen.append(("end", event))

    @property
    def order(self) -> list[tuple[str, int]]:
        return [(name, event.update) for name, event in self.seen]


class Failing:
    """A callback of one method, and of no base class, which fails at one update."""

    def __init__(self, method: str, at: int) -> None:
        self.at = at
        setattr(self, method, self.fail)

    def fail(self, event: TrainingEvent) -> None:
        if event.update == self.at:
            raise ZeroDivisionError("mine")


def train(text: Path, out: Path, *callbacks: object, **settings: Any):
    return heedful.train(recipe(text, train=SHORT | settings), out, console=QUIET, callbacks=callbacks)


def test_callbacks_are_called_after_updates_and_validations_and_at_the_end(text, tmp_path):
    notes = Notes()
    result = train(text, tmp_path / "run", notes)
    updates = [("update", number) for number in range(1, 8)]
    assert notes.order == [*updates[:3], ("validation", 3), *updates[3:6], ("validation", 6), updates[6], ("end", 7)]
    assert all(event.folder == tmp_path / "run" for _, event in notes.seen)
    for name, event in notes.seen:
        logged = next((line for line in result.log if line["update"] == event.update and "norm" in line), {})
        if name == "update":
            assert {key: event.scores[key] for key in ("loss", "lr", "norm")} == pytest.approx(
                {key: logged[key] for key in ("loss", "lr", "norm")}, rel=1e-3
            )
        assert event.finished == (name == "end")
    assert notes.seen[-1][1].scores == final_scores(tmp_path / "run") == result.scores


def test_a_callback_that_only_looks_changes_no_bit(text, tmp_path):
    class Looking:
        def on_update(self, event: TrainingEvent) -> None:
            event.model.eval()
            torch.rand(event.update)

        def on_validation(self, event: TrainingEvent) -> None:
            torch.manual_seed(event.update)

    train(text, tmp_path / "without")
    train(text, tmp_path / "with", Looking())
    assert fingerprint(tmp_path / "with")[0] == fingerprint(tmp_path / "without")[0]


@pytest.mark.parametrize(("method", "at"), [("on_update", 1), ("on_update", 6), ("on_validation", 3)])
def test_an_exception_in_a_callback_saves_the_run_and_reaches_the_caller(text, tmp_path, method, at):
    notes = Notes()
    with pytest.raises(ZeroDivisionError, match="mine"):
        train(text, tmp_path / "run", Failing(method, at), notes)
    assert "end" not in [name for name, _ in notes.seen]
    assert max(path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*")) == f"step-{at:08d}"
    train(text, tmp_path / "run", again := Notes())
    assert next(number for name, number in again.order if name == "update") == at + 1
    train(text, tmp_path / "whole")
    assert fingerprint(tmp_path / "run")[0] == fingerprint(tmp_path / "whole")[0]


def test_an_exception_at_the_end_leaves_the_final_model(text, tmp_path):
    with pytest.raises(ZeroDivisionError):
        train(text, tmp_path / "run", Failing("on_end", 7))
    train(text, tmp_path / "whole")
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (print, "is a builtin_function_or_method with none of these methods"),
        (type("Typing", (), {"on_batch": print, "on_end": print})(), "has on_batch"),
        (3, "is a int with none of these methods"),
    ],
)
def test_what_would_never_be_called_is_refused_before_anything_is_made(text, tmp_path, callback, words):
    with pytest.raises(
        InputError, match=f"must have at least one of the methods on_update, on_validation, on_end.*{words}"
    ):
        train(text, tmp_path / "run", callback)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("callbacks", "words"),
    [
        (Callback(), r"callbacks must be a list, such as \[Callback\(\)\]"),
        ([Callback], r"is a class, not a callback; .*: Callback\(\)"),
    ],
)
def test_a_callback_without_a_list_and_a_class_are_refused(callbacks, words):
    with pytest.raises(InputError, match=words):
        Callbacks(callbacks)


def test_settings_may_change_where_the_caller_allows_it(text, tmp_path):
    def resume(lr: float, **options: Any) -> Callable:
        return lambda: heedful.train(
            recipe(text, train=SHORT, optimizer={"lr": lr}), tmp_path / "run", console=QUIET, **options
        )

    with pytest.raises(ZeroDivisionError):
        resume(0.01, callbacks=[Failing("on_update", 4)])()
    with pytest.raises(InputError, match=r"optimizer\.lr"):
        resume(0.02)()
    assert resume(0.02, allow_change=["optimizer.lr"])().update == 7


def test_one_key_is_allowed_as_a_string(text, tmp_path):
    with pytest.raises(ZeroDivisionError):
        train(text, tmp_path / "run", Failing("on_update", 4))
    changed = recipe(text, train=SHORT, optimizer={"warmup": 9})
    assert heedful.train(changed, tmp_path / "run", console=QUIET, allow_change="optimizer.warmup").update == 7


@pytest.mark.slow
@pytest.mark.parametrize("where", ["all", "first"])
def test_of_two_processes_the_first_calls_its_callbacks_and_both_end_when_one_fails(text, tmp_path, where):
    values = {"max_updates": 4, "device": "cpu", "accumulate": 2}
    settings = recipe(text, train=SHORT | values)
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_to_dict(settings)))
    command = [sys.executable, str(Path(__file__).with_name("callbacks_in_processes.py")), str(tmp_path), where]

    def outcomes() -> list[int | str]:
        assert launch(command, 2) == 0
        return [json.loads((tmp_path / f"outcome-{rank}.json").read_text()) for rank in range(2)]

    reason = "a callback in process 0 has failed (ZeroDivisionError: mine); the run was saved"
    assert outcomes() == ["ZeroDivisionError: mine", f"RunError: {reason}"]
    assert outcomes() == [4, 4]
    calls = (tmp_path / "calls-0").read_text().splitlines()
    assert calls == ["update 1", "update 2", "update 3", "update 4", "end 4"]
    assert not (tmp_path / "calls-1").exists()
    train(text, tmp_path / "whole", **values)
    assert fingerprint(tmp_path / "run")[0] == fingerprint(tmp_path / "whole")[0]
