"""A save is hit at every single call that it makes to the disk: afterwards the old or the new state is there."""

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from faulty_storage import (
    Chance,
    DeadDisk,
    Death,
    EntriesFirst,
    FaultyStorage,
    FullDisk,
    KilledProcess,
    LostPower,
    Luck,
    OneError,
)
from same import same, same_tensors

from heedful.checkpoint import Best, Checkpoint, Checkpoints, load_model, write_model
from heedful.errors import RunError
from heedful.models import weights

Maker = Callable[[int], Checkpoint]

CALLS = 90  # that a save makes at least: a loop over fewer has missed some


def copies(folder: Path, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """1, 2, 3, ... and a copy of the folder for each, removed before the next."""
    for at in count(1):
        place = tmp_path / str(at)
        yield at, shutil.copytree(folder, place / folder.name, copy_function=os.link)
        shutil.rmtree(place)


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def check(run: Path, checkpoint_of: Maker) -> int:
    """The step that is loaded, after nothing was found missing or damaged."""
    checkpoints = Checkpoints(run, keep_last=2)
    latest = checkpoints.load_latest()
    assert latest.rejected == ()
    assert latest.checkpoint is not None
    assert same(latest.checkpoint, checkpoint_of(latest.checkpoint.step))
    assert checkpoints.best == Best(2, "loss", 0.7)
    assert {2, 5} <= set(checkpoints.steps()) <= {2, 3, 5, 7}
    return latest.checkpoint.step


@pytest.mark.parametrize("disk", [OneError, FullDisk, DeadDisk])
def test_a_save_that_fails_leaves_the_old_or_the_new_state_and_can_be_repeated(
    disk: type[FaultyStorage], first_run: Path, tmp_path: Path, checkpoint_of: Maker
) -> None:
    for at, run in copies(first_run, tmp_path):
        storage = disk(at)
        try:
            Checkpoints(run, 2, storage).save(checkpoint_of(7))
        except RunError:
            assert storage.was_met
        assert check(run, checkpoint_of) in (5, 7)
        if disk is FullDisk:
            assert not any(name.startswith(".tmp") for name in hidden(run / "checkpoints"))
        if not storage.was_met:
            break
        Checkpoints(run, 2, FaultyStorage()).save(checkpoint_of(7))
        assert check(run, checkpoint_of) == 7
        assert Checkpoints(run, 2).steps() == [2, 5, 7]
        assert hidden(run / "checkpoints") == []
    assert at > CALLS


def test_a_kill_leaves_the_old_or_the_new_state(first_run: Path, tmp_path: Path, checkpoint_of: Maker) -> None:
    found = []
    for at, run in copies(first_run, tmp_path):
        try:
            Checkpoints(run, 2, KilledProcess(at)).save(checkpoint_of(7))
        except Death:
            found.append(check(run, checkpoint_of))
            continue
        break
    assert found == sorted(found)
    assert set(found) == {5, 7}
    assert len(found) >= CALLS


@pytest.mark.parametrize("luck", [Luck(), EntriesFirst(), Chance(1)])
def test_lost_power_leaves_the_old_or_the_new_state(
    luck: Luck, first_run: Path, tmp_path: Path, checkpoint_of: Maker
) -> None:
    for at, run in copies(first_run, tmp_path):
        removed, after = run.parent / "removed", run.parent / "after"
        removed.mkdir()
        storage = LostPower(at, run, removed)
        try:
            Checkpoints(run, 2, storage).save(checkpoint_of(7))
        except Death:
            storage.after(after, luck)
            assert check(after, checkpoint_of) in (5, 7)
            continue
        storage.after(after, luck)
        assert check(after, checkpoint_of) == 7
        break
    assert at > CALLS


@pytest.mark.parametrize("disk", [OneError, FullDisk, KilledProcess])
def test_the_best_is_the_old_or_the_new_one(disk: type[FaultyStorage], first_run: Path, tmp_path: Path) -> None:
    for at, run in copies(first_run, tmp_path):
        storage = disk(at)
        try:
            Checkpoints(run, 2, storage).mark_best(5, "loss", 0.3)
        except (RunError, Death):
            assert Checkpoints(run, 2).best in (Best(2, "loss", 0.7), Best(5, "loss", 0.3))
        if not storage.was_met:
            break
        Checkpoints(run, 2, FaultyStorage()).mark_best(5, "loss", 0.3)
        assert Checkpoints(run, 2).best == Best(5, "loss", 0.3)
    assert at > 5


@pytest.mark.parametrize("disk", [OneError, KilledProcess])
def test_a_model_that_is_replaced_is_the_old_or_the_new_one_or_the_old_under_a_hidden_name(
    disk: type[FaultyStorage], tmp_path: Path, checkpoint_of: Maker
) -> None:
    old, new = checkpoint_of(2), checkpoint_of(3)
    first = tmp_path / "first" / "model"
    write_model(first, old.recipe, old.tokenizers, old.weights)
    for at, folder in copies(first, tmp_path):
        storage = disk(at)
        try:
            write_model(folder, new.recipe, new.tokenizers, new.weights, storage=storage)
        except (RunError, Death):
            assert folder.exists() or disk is not OneError
        loaded = load_model(folder if folder.exists() else folder.with_name(".old-model"))
        expected = old if loaded.recipe == old.recipe else new
        assert loaded.recipe == expected.recipe
        assert same_tensors(weights(loaded.model), expected.weights)
        if not storage.was_met:
            break
        write_model(folder, new.recipe, new.tokenizers, new.weights, storage=FaultyStorage())
        assert load_model(folder).recipe == new.recipe
        assert hidden(folder.parent) == []
    assert at > CALLS / 2
