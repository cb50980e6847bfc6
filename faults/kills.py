"""SIGKILL of a training at random times, again and again; the same command goes on until the run ends.

Eager float32, bfloat16 and compiled, with one process and with two, which share the weights or do not; all are killed,
or any one of them, the one that started the others too. Every loss in log.jsonl, to the last bit, and the sha256 of the
final weights equal those of a run that nothing stopped.
"""

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tally
import toy
from commands import LONGEST, Command, gone, kill

COUNT = 100


@dataclass(frozen=True)
class Variant:
    """Kind of training to kill: precision, compiled or not, processes, percent of all kills, weights shared or not."""

    precision: str
    compiled: bool
    processes: int
    share: int
    sharded: bool = False

    @property
    def name(self) -> str:
        """The variant in words."""
        kind = f"compiled {self.precision}" if self.compiled else self.precision
        processes = f"{self.processes} process{'es' if self.processes > 1 else ''}"
        return f"{kind}, {processes}{' that share the weights' if self.sharded else ''}"


VARIANTS = (
    Variant("float32", False, 1, 37),
    Variant("float32", False, 2, 12),
    Variant("float32", False, 2, 10, sharded=True),
    Variant("bfloat16", False, 1, 24),
    Variant("bfloat16", False, 2, 12),
    Variant("float32", True, 1, 3),
    Variant("float32", True, 2, 2),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill trainings of each variant, and compare what they become."""
    asked = tally.options(__doc__, COUNT, arguments)
    found = tally.Tally(__file__, asked)
    rng = random.Random(asked.seed)
    for variant, kills in shares(asked.count):
        with TemporaryDirectory() as name, found.trial(variant.name):
            attack(variant, Path(name), kills, rng)
            found.faults[f"SIGKILLs, {variant.name}"] += kills
    return found.conclude()


def shares(count: int) -> Iterator[tuple[Variant, int]]:
    """Deal out the kills; few of them go to the first variant alone."""
    dealt = [count * variant.share // 100 for variant in VARIANTS]
    dealt[0] += count - sum(dealt)
    return ((variant, kills) for variant, kills in zip(VARIANTS, dealt, strict=True) if kills)


def attack(variant: Variant, folder: Path, kills: int, rng: random.Random) -> None:
    """Train once without a break, then through `kills` kills in as many runs as that takes; all must be equal.

    Raises:
        AssertionError: a run failed by itself, or its log or final weights differ.
    """
    write_task(variant, folder)
    whole = start(variant, folder, "whole")
    assert whole.follow() == 0, whole.said()
    expected, number = toy.fingerprint(folder / "whole"), 0
    while kills > 0:
        run = f"run-{number}"
        kills = kill_until_done(variant, folder, run, kills, rng)
        assert toy.fingerprint(folder / run) == expected, f"{run} differs from the run that nothing stopped"
        number += 1


def write_task(variant: Variant, folder: Path) -> None:
    """Write data and recipe of a variant: some seconds of training, with saves and validations all along."""
    toy.write_pairs(folder)
    toy.write_recipe(
        folder,
        model={"dropout": 0.1},
        train={
            "precision": variant.precision,
            "compile": variant.compiled,
            "accumulate": 2,
            "max_updates": 211 if variant.compiled else 401,
            "save_every": 13,
            "validate_every": 101,
            "log_every": 1,
        },
        parallel={"shard": "full" if variant.sharded else "none"},
    )


def start(variant: Variant, folder: Path, run: str) -> Command:
    """Start the command that begins a run, or goes on with it."""
    arguments = ["train", str(folder), "--out", str(folder / run)]
    compiled = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}
    return Command(arguments, folder / f"{run}.txt", variant.processes, compiled)


def kill_until_done(variant: Variant, folder: Path, run: str, kills: int, rng: random.Random) -> int:
    """Train a run to its end through at most `kills` kills; return how many are left.

    Raises:
        AssertionError: the run failed by itself.
    """
    while True:
        begun = start(variant, folder, run)
        if kills:
            wait_for_a_moment(begun, folder / run / "log.jsonl", rng)
        if not kills or begun.code is not None:
            code = begun.follow()
            begun.end()
            assert code == 0, begun.said()
            return kills
        kill_some(begun, rng)
        kills -= 1


def wait_for_a_moment(begun: Command, log: Path, rng: random.Random) -> None:
    """Wait for a random moment: one in five may come before the first update of a command, the others after it."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 6))
        return
    before, end = size(log), time.monotonic() + LONGEST
    while size(log) == before and begun.code is None and time.monotonic() < end:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 2))


def size(file: Path) -> int:
    """The size of a file in bytes; 0 if it does not exist."""
    return file.stat().st_size if file.exists() else 0


def kill_some(begun: Command, rng: random.Random) -> None:
    """Kill all processes of a command, or any one of them, after which the others must end by themselves.

    Raises:
        AssertionError: a process outlives the others.
    """
    processes = begun.processes()
    kill(rng.choice([processes, *[[process] for process in processes]]))
    assert gone(processes), f"a process goes on without the others: {begun.said()}"
    begun.follow()


if __name__ == "__main__":
    sys.exit(main())
