"""Hits every I/O call of a save: of a checkpoint, of the mark of the best one, and of the final model.

Call k fails for k = 1, 2, 3 ... up to the last, in each way that a disk or a machine can fail: one error, a full disk,
a dead disk, a kill, and a loss of power with several kinds of luck about what had not reached the disk. Each time the
old or the new state must be there, whole and bit for bit, and the same save must succeed afterwards. `--count` is the
most calls that are hit in each way.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import tally
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
from toy_checkpoints import BEST, checkpoint_of, save_run, tokenizers

from heedful.architectures import weights
from heedful.checkpoint import Best, Checkpoints, load_model, write_model
from heedful.errors import RunError
from heedful.storage.complete_folder import verify_folder
from heedful.storage.disk import Storage

COUNT = 1000  # more than any save has calls
DISKS = {"an error": OneError, "a full disk": FullDisk, "a dead disk": DeadDisk, "a kill": KilledProcess}
NEW_BEST = Best(5, "loss", 0.3)


@dataclass(frozen=True)
class Save:
    """One kind of save.

    Attributes:
        prepare: writes what is there before it.
        perform: saves.
        check: checks what is there, and returns True if it is the new state.
    """

    prepare: Callable[[Path], None]
    perform: Callable[[Path, Storage], None]
    check: Callable[[Path], bool]


def save_step(run: Path, storage: Storage) -> None:
    Checkpoints(run, 2, storage).save(checkpoint_of(7))


def save_first(run: Path, storage: Storage) -> None:
    Checkpoints(run, 2, storage).save(checkpoint_of(2))


def mark_best(run: Path, storage: Storage) -> None:
    Checkpoints(run, 2, storage).mark_best(NEW_BEST.step, NEW_BEST.metric, NEW_BEST.value)


def save_model(step: int, run: Path, storage: Storage) -> None:
    checkpoint = checkpoint_of(step)
    write_model(run / "model", checkpoint.recipe, tokenizers(), checkpoint.weights, storage=storage)


def run_with_model(run: Path) -> None:
    run.mkdir()
    save_model(2, run, FaultyStorage())


def whole(run: Path, best: tuple[Best, ...]) -> int:
    """The newest step of a run whose checkpoints are all whole and the saved ones, bit for bit."""
    checkpoints = Checkpoints(run, keep_last=2)
    steps = checkpoints.steps()
    assert {2, 5} <= set(steps) <= {2, 3, 5, 7}, steps
    for step in steps:
        verify_folder(checkpoints.path(step))
    latest = checkpoints.load_latest()
    assert latest.rejected == ()
    assert same(latest.checkpoint, checkpoint_of(steps[-1]))
    assert checkpoints.best in best
    return steps[-1]


def step_is_new(run: Path) -> bool:
    return whole(run, (BEST,)) == 7


def first_is_new(run: Path) -> bool:
    latest = Checkpoints(run, keep_last=2).load_latest()
    assert latest.checkpoint is None or same(latest.checkpoint, checkpoint_of(2))
    return latest.checkpoint is not None


def best_is_new(run: Path) -> bool:
    assert whole(run, (BEST, NEW_BEST)) == 5
    return Checkpoints(run, keep_last=2).best == NEW_BEST


def model_is_new(run: Path) -> bool:
    folder = run / "model"  # a kill between two renames leaves the earlier model beside it
    loaded = load_model(folder if folder.exists() else run / ".old-model")
    expected = checkpoint_of(2 if loaded.recipe == checkpoint_of(2).recipe else 3)
    assert loaded.recipe == expected.recipe
    assert same_tensors(weights(loaded.model), expected.weights)
    return expected is checkpoint_of(3)


SAVES = {
    "a checkpoint": Save(save_run, save_step, step_is_new),
    "the first checkpoint": Save(Path.mkdir, save_first, first_is_new),
    "the mark of the best": Save(save_run, mark_best, best_is_new),
    "the final model": Save(run_with_model, partial(save_model, 3), model_is_new),
}


def hit(save: Save, at: int, disk: Callable[[int, Path], FaultyStorage], luck: Luck | None) -> None:
    """Save while call `at` fails; then the old or the new state is there, and the save succeeds when it is repeated."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"
        save.prepare(run)
        storage = disk(at, run)
        with suppress(RunError, Death):
            save.perform(run, storage)
        assert storage.was_met, f"there is no call {at}"
        if luck and isinstance(storage, LostPower):
            run = storage.after(luck)
        save.check(run)
        save.perform(run, FaultyStorage())
        assert save.check(run)
        left = [path for path in run.rglob("*") if path.name.startswith((".tmp-", ".old-"))]
        assert not left, left


def calls(save: Save) -> int:
    """The number of I/O calls of an undisturbed save."""
    with tempfile.TemporaryDirectory() as name:
        storage = FaultyStorage()
        save.prepare(Path(name) / "run")
        save.perform(Path(name) / "run", storage)
        return storage.calls


def ways(seed: int) -> dict[str, tuple[Callable[[int, Path], FaultyStorage], Luck | None]]:
    """All ways in which a call can fail."""
    ways: dict[str, tuple[Callable[[int, Path], FaultyStorage], Luck | None]] = {
        name: (lambda at, _, disk=disk: disk(at), None) for name, disk in DISKS.items()
    }
    lucks = {"nothing": Luck(), "entries only": EntriesFirst()} | {f"chance {n}": Chance(seed + n) for n in range(5)}
    return ways | {f"a loss of power that spares {name}": (LostPower, luck) for name, luck in lucks.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    asked = tally.options(__doc__, COUNT, arguments)
    counted = tally.Tally(__file__, asked)
    draw = Random(asked.seed)
    for what, save in SAVES.items():
        number = calls(save)
        sys.stdout.write(f"{what}: {number} calls\n")
        for way, (disk, luck) in ways(asked.seed).items():
            for at in sorted(draw.sample(range(1, number + 1), min(asked.count, number))):
                counted.faults[f"times {way}"] += 1
                with counted.trial(f"{what}: {way} at call {at} of {number}"):
                    hit(save, at, disk, luck)
    return counted.conclude()


if __name__ == "__main__":
    sys.exit(main())
