"""A disk with room for a checkpoint and a half: the run ends, and an intact checkpoint is there at every moment.

A thread reads the newest checkpoint again and again while the run goes on. Each save that fails is told in one line,
and no half-written file is left. Once there is room, the same command ends with the model of a run on a large disk.
Only root can mount such a disk.
"""

import io
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import tally
import toy
from rich.console import Console

from heedful.checkpoint import Checkpoints
from heedful.config.schema import Recipe
from heedful.errors import RunError
from heedful.training import loop

COUNT = 20
SAVES = 20  # of each run


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on disks that are too small, each of another size."""
    asked = tally.options(__doc__, COUNT, arguments)
    found = tally.Tally(__file__, asked)
    rng = random.Random(asked.seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        toy.write_pairs(folder)
        recipe = toy.recipe(folder, train={"max_updates": 5 * SAVES, "save_every": 5, "keep_last": 2})
        train(recipe, folder / "whole", folder / "data")
        whole = toy.fingerprint(folder / "whole")
        size = sum(file.stat().st_size for file in Checkpoints(folder / "whole", 2).path(5 * SAVES).rglob("*"))
        for number in range(asked.count):
            with found.trial(f"disk {number} of seed {asked.seed}"):
                attack(recipe, folder / f"disk-{number}", int(size * rng.uniform(1.4, 1.6)), whole, found)
    return found.conclude()


def train(recipe: Recipe, run: Path, data: Path) -> str:
    """Train in this process; return what was said."""
    screen = io.StringIO()
    try:
        loop.train(recipe, run, Console(file=screen, width=1000), data)
    except RunError as error:
        screen.write(f"{error}\n")
    return screen.getvalue()


def attack(recipe: Recipe, place: Path, size: int, whole: tuple[str, bytes], found: tally.Tally) -> None:
    """Train on a disk of some bytes, and then where there is room.

    Raises:
        AssertionError: there was a moment without a checkpoint, or something was left over or differs.
    """
    data = place.parent / "data"
    with disk(place, size) as mounted:
        if not mounted:
            found.faults["trials skipped: no disk can be mounted here"] += 1
            return
        run = place / "run"
        watch = Watch(run)
        said = train(recipe, run, data)
        assert watch.conclude() == 0, "at a moment there was no intact checkpoint"
        found.faults["checkpoints read meanwhile"] += watch.read
        failures = [line for line in said.splitlines() if "No space left" in line]
        found.faults["saves that failed"] += len(failures)
        assert failures, f"a disk of {size} bytes was large enough"
        assert all(line.startswith("NOT SAVED") for line in failures[:-1]), said
        assert not [path for path in run.rglob(".*") if path.name.startswith((".tmp-", ".old-"))]
        assert Checkpoints(run, 2).load_until(10**6), said
        shutil.copytree(run, place.with_suffix(".copy"))
    train(recipe, place.with_suffix(".copy"), data)
    assert toy.fingerprint(place.with_suffix(".copy")) == whole


class Watch:
    """Thread that loads the newest checkpoint of a run again and again, from the first one on.

    Args:
        run: The folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.read = self.missing = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self) -> None:
        """Count how often there is a checkpoint, and how often there is none any more."""
        while not self.ended.wait(0.05):
            checkpoints = Checkpoints(self.run, 2)
            if checkpoints.load_until(10**6) or checkpoints.load_until(10**6):  # it may be replaced while it is read
                self.read += 1
            elif self.read:
                self.missing += 1

    def conclude(self) -> int:
        """End the thread, and return the number of times that there was no checkpoint any more."""
        self.ended.set()
        self.thread.join()
        return self.missing


@contextmanager
def disk(place: Path, size: int) -> Iterator[bool]:
    """Mount a disk of some bytes, in memory; False if that is not possible here."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "heedful", str(place)]
    mounted = bool(shutil.which("mount")) and subprocess.run(words, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)


if __name__ == "__main__":
    sys.exit(main())
