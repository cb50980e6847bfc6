"""A save is hit at every single call that it makes to the disk: afterwards the old or the new state is there."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
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

from heedful.architectures import weights
from heedful.checkpoint import Best, Checkpoint, Checkpoints, load_model, write_model
from heedful.errors import RunError
from heedful.storage.complete_folder import verify_sizes

Maker = Callable[[int], Checkpoint]


def slow(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.slow)


def copies(folder: Path, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """1, 2, 3, ... and a copy of the folder for each, removed before the next; ends when the caller does."""
    for at in count(1):
        place = tmp_path / str(at)
        yield at, shutil.copytree(folder, place / folder.name, copy_function=os.link)
        shutil.rmtree(place)


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def check(run: Path, checkpoint_of: Maker) -> int:
    """The step that is loaded, bit for bit, with nothing missing or damaged."""
    checkpoints = Checkpoints(run, keep_last=2)
    latest = checkpoints.load_latest()
    assert latest.rejected == ()
    assert latest.checkpoint is not None
    assert same(latest.checkpoint, checkpoint_of(latest.checkpoint.step))
    assert checkpoints.best == Best(2, "loss", 0.7)
    assert {2, 5} <= set(checkpoints.steps()) <= {2, 3, 5, 7}
    for step in checkpoints.steps():
        verify_sizes(checkpoints.path(step))
    return latest.checkpoint.step


@pytest.fixture
def calls(run: Path, checkpoint_of: Maker) -> int:
    """How many calls a save makes."""
    storage = FaultyStorage()
    Checkpoints(run, 2, storage).save(checkpoint_of(7))
    assert storage.calls > 70
    return storage.calls


@pytest.mark.parametrize("disk", [OneError, slow(FullDisk), slow(DeadDisk)])
def test_a_save_that_fails_leaves_the_old_or_the_new_state_and_can_be_repeated(
    disk: type[FaultyStorage], calls: int, first_run: Path, tmp_path: Path, checkpoint_of: Maker
) -> None:
    for at, run in copies(first_run, tmp_path):
        if at > calls:
            break
        with suppress(RunError) if disk is FullDisk else pytest.raises(RunError, match="cannot save step 7"):
            Checkpoints(run, 2, disk(at)).save(checkpoint_of(7))
        assert check(run, checkpoint_of) in (5, 7)
        if disk is FullDisk:
            assert not any(name.startswith(".tmp") for name in hidden(run / "checkpoints"))
        Checkpoints(run, 2, FaultyStorage()).save(checkpoint_of(7))
        assert check(run, checkpoint_of) == 7
        assert Checkpoints(run, 2).steps() == [2, 5, 7]
        assert hidden(run / "checkpoints") == []


def test_a_kill_leaves_the_old_or_the_new_state(
    calls: int, first_run: Path, tmp_path: Path, checkpoint_of: Maker
) -> None:
    found = []
    for at, run in copies(first_run, tmp_path):
        if at > calls:
            break
        with pytest.raises(Death):
            Checkpoints(run, 2, KilledProcess(at)).save(checkpoint_of(7))
        found.append(check(run, checkpoint_of))
    assert found == sorted(found)
    assert set(found) == {5, 7}


@pytest.mark.slow
@pytest.mark.parametrize("luck", [Luck(), EntriesFirst(), Chance(1)])
def test_lost_power_leaves_the_old_or_the_new_state(
    luck: Luck, calls: int, first_run: Path, tmp_path: Path, checkpoint_of: Maker
) -> None:
    for at, run in copies(first_run, tmp_path):
        storage = LostPower(at, run)
        if at > calls:
            break
        with pytest.raises(Death):
            Checkpoints(run, 2, storage).save(checkpoint_of(7))
        assert check(storage.after(luck), checkpoint_of) in (5, 7)


@pytest.mark.parametrize("luck", [Luck(), EntriesFirst(), Chance(1)])
def test_lost_power_after_a_save_leaves_the_new_state(luck: Luck, run: Path, checkpoint_of: Maker) -> None:
    storage = LostPower(1000, run)
    Checkpoints(run, 5, storage).save(checkpoint_of(7))
    assert check(storage.after(luck), checkpoint_of) == 7


@pytest.mark.parametrize("disk", [OneError, FullDisk, KilledProcess])
def test_the_best_is_the_old_or_the_new_one(disk: type[FaultyStorage], first_run: Path, tmp_path: Path) -> None:
    found = []
    for at, run in copies(first_run, tmp_path):
        storage = disk(at)
        with suppress(RunError, Death):
            Checkpoints(run, 2, storage).mark_best(5, "loss", 0.3)
        found.append(Checkpoints(run, 2).best)
        if not storage.was_met:
            break
        Checkpoints(run, 2, FaultyStorage()).mark_best(5, "loss", 0.3)
        assert Checkpoints(run, 2).best == Best(5, "loss", 0.3)
    assert len(found) > 5
    assert set(found) == {Best(2, "loss", 0.7), Best(5, "loss", 0.3)}


@pytest.mark.parametrize("disk", [slow(OneError), slow(KilledProcess)])
def test_a_model_that_is_replaced_is_the_old_or_the_new_one(
    disk: type[FaultyStorage], tmp_path: Path, checkpoint_of: Maker
) -> None:
    old, new = checkpoint_of(2), checkpoint_of(3)
    write_model(tmp_path / "first/model", old.recipe, old.tokenizers, old.weights)
    for at, folder in copies(tmp_path / "first/model", tmp_path):
        storage = disk(at)
        with suppress(RunError, Death):
            write_model(folder, new.recipe, new.tokenizers, new.weights, storage=storage)
        assert folder.exists() or disk is KilledProcess
        loaded = load_model(folder if folder.exists() else folder.with_name(".old-model"))
        expected = old if loaded.recipe == old.recipe else new
        assert loaded.recipe == expected.recipe
        assert same_tensors(weights(loaded.model), expected.weights)
        if not storage.was_met:
            assert at > 40
            break
        write_model(folder, new.recipe, new.tokenizers, new.weights, storage=FaultyStorage())
        assert load_model(folder).recipe == new.recipe
        assert hidden(folder.parent) == []
