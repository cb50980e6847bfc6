import errno
import io
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from heedful.checkpoint import Checkpoints, claim
from heedful.errors import InputError, RunError
from heedful.storage.disk import Storage
from heedful.tasks.text_to_text import Translation
from heedful.training import loop
from heedful.training.checkpointing import CheckpointSaver
from heedful.training.trainer import Trainer
from interrupted import stop_after, train, train_aloud
from reversal import fingerprint, recipe, write_texts


@pytest.fixture(scope="module")
def whole_mean_of(tmp_path_factory) -> Callable[[int], tuple[str, bytes]]:
    """What a run has whose disk never fails and whose model is the mean of so many checkpoints; each is made once."""
    text = tmp_path_factory.mktemp("text")
    write_texts(text)

    @cache
    def trained(average_last: int) -> tuple[str, bytes]:
        train(recipe(text, train={"average_last": average_last}), text / f"run-{average_last}")
        return fingerprint(text / f"run-{average_last}")

    return trained


@pytest.fixture
def whole(whole_mean_of) -> tuple[str, bytes]:
    return whole_mean_of(2)


def full_disk(patch: pytest.MonkeyPatch, refuses: Callable[[Path], bool]) -> None:
    """Let no file be made that is refused."""
    honest = Storage.create

    def create(self, path):
        if refuses(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return honest(self, path)

    patch.setattr(Storage, "create", create)


def at_first(count: int, name: str = "") -> Callable[[Path], bool]:
    """Refuses so many files whose path holds a name, and none after them."""
    left = list(range(count))
    return lambda path: name in str(path) and bool(left) and left.pop() >= 0


# Steps 7 and 14 are saved for their validations, of which the best is the final model unless it is a mean.
@pytest.mark.parametrize(("step", "average_last"), [(5, 1), (7, 1), (14, 1), (10, 2), (14, 2), (15, 2)])
def test_a_save_that_fails_once_changes_nothing(step, average_last, whole_mean_of, text, tmp_path, monkeypatch):
    settings, whole = recipe(text, train={"average_last": average_last}), whole_mean_of(average_last)
    full_disk(monkeypatch, at_first(1, f"step-{step:08d}"))
    outcome, said = train_aloud(settings, tmp_path / "run")
    assert outcome == loop.Outcome(19, 0)
    assert f"NOT SAVED: cannot save step {step}" in said
    assert "kept in memory" in said
    assert fingerprint(tmp_path / "run") == whole


def test_a_disk_that_is_full_for_a_while_changes_nothing(whole, text, tmp_path, monkeypatch):
    full_disk(monkeypatch, at_first(4, "checkpoints"))
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == whole


def test_a_best_that_cannot_be_marked_is_marked_before_anything_is_deleted(text, tmp_path, monkeypatch):
    settings = recipe(text, train={"average_last": 1, "keep_last": 1, "validate_every": 2, "save_every": 1})
    train(settings, tmp_path / "whole")
    full_disk(monkeypatch, at_first(5, "best.json"))
    train(settings, tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_a_kill_while_checkpoints_wait_in_memory_changes_nothing(whole, text, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        full_disk(patch, lambda path: "step-00000010" in str(path) or "step-00000014" in str(path))
        patch.setattr(Trainer, "save_is_due", lambda run, _: dies_at(17, run))
        with pytest.raises(KeyboardInterrupt):
            train(recipe(text), tmp_path / "run")
    assert newest(tmp_path / "run") == 7
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == whole


def dies_at(update: int, run: Trainer) -> bool:
    if run.state.update == update:
        raise KeyboardInterrupt
    return run.state.update % 5 == 0


def newest(folder: Path) -> int:
    return max(int(path.name.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*"))


def test_a_disk_that_stays_full_ends_the_run_with_an_error_and_more_space_with_the_same_model(
    whole, text, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        full_disk(patch, lambda path: any(f"step-{step:08d}" in str(path) for step in range(8, 20)))
        with pytest.raises(RunError, match=r"cannot save step 10 in .*No space left"):
            train(recipe(text), tmp_path / "run")
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == whole


def test_memory_holds_no_checkpoint_that_nobody_needs(text, tmp_path, monkeypatch):
    waiting = []
    honest = CheckpointSaver.begin
    monkeypatch.setattr(CheckpointSaver, "begin", lambda saver, *of: (honest(saver, *of), waiting.append(held(saver))))
    full_disk(monkeypatch, lambda path: "step-" in str(path))
    settings = recipe(text, train={"max_updates": 100, "average_last": 2, "best": "loss"})
    with pytest.raises(RunError):
        train(settings, tmp_path / "run")
    assert max(map(len, waiting)) <= 4
    [while_98_is_newest] = [steps for steps in waiting if steps[-1] == 98]
    assert while_98_is_newest[-3:] == [90, 95, 98]
    assert waiting[-1][-2:] == [95, 100]
    assert len(waiting[-1]) == 3  # the best one, too


def held(saver: CheckpointSaver) -> list[int]:
    """The steps that wait in memory once the save that runs has ended."""
    saver.running.exception()
    return [*saver.waiting]


def test_a_crash_in_a_validation_loses_no_update_and_changes_nothing(whole, text, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Translation, "evaluate", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(recipe(text), tmp_path / "run")
    assert newest(tmp_path / "run") == 7
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == whole


def test_a_kill_between_validating_and_the_next_save_changes_nothing(whole, text, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save_is_due", lambda run, _: dies_at(9, run))
        with pytest.raises(KeyboardInterrupt):
            train(recipe(text), tmp_path / "run")
    monkeypatch.setattr(Trainer, "validate", unexpected(7))
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == whole


def unexpected(update: int) -> Callable[..., None]:
    """A validation whose scores the log has already."""
    honest = Trainer.validate

    def validate(run):
        assert run.state.update != update
        honest(run)

    return validate


def test_a_score_that_is_not_a_number_is_never_the_best_and_ends_no_run(text, tmp_path, monkeypatch):
    honest = Translation.evaluate

    def evaluate(task, model, run):
        calls.append(model)
        results = honest(task, model, run)
        if len(calls) > 1:
            return results
        return replace(results, scores={**results.scores, "bleu": float("nan"), "loss": float("inf")})

    monkeypatch.setattr(Translation, "evaluate", evaluate)
    calls: list = []
    train(recipe(text), tmp_path / "whole")
    log = (tmp_path / "whole" / "log.jsonl").read_text()
    assert '"valid_loss": null' in log
    assert "NaN" not in log
    calls.clear()
    with monkeypatch.context() as patch:
        stop_after(8, patch)
        train(recipe(text), tmp_path / "parts")
    train(recipe(text), tmp_path / "parts")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


@pytest.fixture
def slow_disk(monkeypatch) -> Callable[..., None]:
    """Makes the saving of a step wait until the update after a later one."""

    def slow(step: int, until: int) -> None:
        reached = Event()
        honest_save, honest_update = Checkpoints.save, Trainer.compute

        def save(checkpoints, checkpoint):
            if checkpoint.step == step:
                assert reached.wait(timeout=60)
            honest_save(checkpoints, checkpoint)

        def compute(run):
            if run.state.update == until:
                reached.set()
            return honest_update(run)

        monkeypatch.setattr(Checkpoints, "save", save)
        monkeypatch.setattr(Trainer, "compute", compute)

    return slow


def test_training_goes_on_while_a_slow_disk_takes_a_checkpoint(text, tmp_path, slow_disk):
    settings = recipe(text, train={"save_every": 5, "validate_every": 100})
    train(settings, tmp_path / "whole")
    slow_disk(5, until=8)
    train(settings, tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_a_slow_disk_gets_the_weights_of_the_update_that_was_saved(text, tmp_path, slow_disk):
    settings = recipe(text, train={"save_every": 5, "validate_every": 100, "keep_last": 9})
    train(settings, tmp_path / "whole")
    slow_disk(5, until=8)
    train(settings, tmp_path / "run")
    for name in ("model.safetensors", "optimizer.safetensors"):
        saved = [tmp_path / run / "checkpoints" / "step-00000005" / name for run in ("whole", "run")]
        assert saved[0].read_bytes() == saved[1].read_bytes()


def test_a_validation_waits_until_its_checkpoint_is_written(text, tmp_path, monkeypatch):
    honest_save, honest_evaluate, written = Checkpoints.save, Translation.evaluate, []

    def save(checkpoints, checkpoint):
        time.sleep(0.3)
        honest_save(checkpoints, checkpoint)

    def evaluate(task, model, run):
        written.append(newest(tmp_path / "run"))
        return honest_evaluate(task, model, run)

    monkeypatch.setattr(Checkpoints, "save", save)
    monkeypatch.setattr(Translation, "evaluate", evaluate)
    train(recipe(text, train={"average_last": 1}), tmp_path / "run")
    assert written[:2] == [7, 14]


def test_nothing_is_deleted_or_visible_while_a_checkpoint_is_being_written(text, tmp_path, monkeypatch):
    seen, honest = [], Storage.create
    checkpoints = tmp_path / "run" / "checkpoints"

    def create(storage, path):
        if path.parent.parent == checkpoints and "step-00000015" in path.parent.name and path.name == "manifest.json":
            seen.extend(sorted(path.name for path in checkpoints.glob("step-*")))
        return honest(storage, path)

    monkeypatch.setattr(Storage, "create", create)
    train(recipe(text, train={"save_every": 5, "validate_every": 100, "keep_last": 2}), tmp_path / "run")
    assert seen == ["step-00000005", "step-00000010"]


def test_a_save_that_failed_is_told_after_the_next_update_at_the_latest(text, tmp_path, monkeypatch):
    full_disk(monkeypatch, at_first(1, "step-00000005"))
    honest = Trainer.compute

    def compute(run):
        if run.saver.running:
            run.saver.running.exception()
        told.append((run.state.update, screen.getvalue().count("NOT SAVED")))
        return honest(run)

    monkeypatch.setattr(Trainer, "compute", compute)
    told: list = []
    screen = io.StringIO()
    settings = recipe(text, train={"save_every": 5, "validate_every": 100})
    loop.train(settings, tmp_path / "run", Console(file=screen, width=500))
    assert (5, 0) in told
    assert (6, 1) in told


@pytest.fixture
def failing_run(text, tmp_path, monkeypatch) -> Callable[..., str]:
    """Trains with an error in an update, before which something is called; returns what was shown."""

    def fail(update: int, error: type[BaseException], before: Callable[[], object] = lambda: None) -> str:
        def count(run, *of):
            if run.state.update == update:
                before()
                raise ZeroDivisionError
            honest(run, *of)

        honest, screen = Trainer.count, io.StringIO()
        monkeypatch.setattr(Trainer, "count", count)
        settings = recipe(text, train={"save_every": 5, "validate_every": 100})
        with pytest.raises(error):
            loop.train(settings, tmp_path / "run", Console(file=screen, width=500))
        return screen.getvalue()

    return fail


@pytest.fixture
def owners(tmp_path, monkeypatch) -> Callable[..., list[str]]:
    """Lets a save wait for an event, call something, and note for half a second who holds the folder."""

    def note(event: Event, then: Callable[[], object] = lambda: None) -> list[str]:
        def save(checkpoints, checkpoint):
            assert event.wait(timeout=60)
            then()
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                noted.append(owner(tmp_path / "run"))
                time.sleep(0.05)
            honest(checkpoints, checkpoint)

        honest, noted = Checkpoints.save, []
        monkeypatch.setattr(Checkpoints, "save", save)
        return noted

    return note


def test_a_run_that_ends_with_an_error_holds_its_folder_until_the_checkpoint_is_written(owners, failing_run, tmp_path):
    failed = Event()
    noted = owners(failed)
    failing_run(6, ZeroDivisionError, before=failed.set)
    assert {*noted} == {"claimed"}
    assert newest(tmp_path / "run") == 5


def test_an_interrupt_while_a_run_waits_for_its_disk_does_not_give_the_folder_up(owners, failing_run, tmp_path):
    def interrupt():
        time.sleep(1)  # the training has ended by then, and waits
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def fail():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        failed.set()

    failed = Event()
    noted = owners(failed, interrupt)
    failing_run(6, KeyboardInterrupt, before=fail)
    assert {*noted} == {"claimed"}
    assert newest(tmp_path / "run") == 5


def test_an_error_of_a_save_is_told_though_the_run_ends_with_another_one(failing_run, monkeypatch):
    full_disk(monkeypatch, lambda path: "step-00000005" in str(path))
    assert failing_run(5, ZeroDivisionError).count("NOT SAVED: cannot save step 5") == 1


def owner(folder: Path) -> str:
    try:
        with claim(folder):
            return "free"
    except InputError:
        return "claimed"
