"""SIGTERM, SIGINT, SIGUSR1 and SIGHUP at random times: a run is saved within 10 s, and the same command goes on.

They come while data is prepared, and anywhere among updates, validations and saves that follow each other closely; with
one process, and with two, of which any gets the signal. The exit code tells the signal (75 with `--requeue`), the
checkpoint is there that the message names, nothing half made is left, and the run ends as one that nothing stopped.
"""

import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import tally
import toy
from commands import LONGEST, Command

COUNT = 20
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Send signals to trainings in one process and in two, half of them to each; a few go to one process only."""
    asked = tally.options(__doc__, COUNT, arguments)
    found = tally.Tally(__file__, asked)
    rng = random.Random(asked.seed)
    seconds = 10 if asked.count >= COUNT else 60  # the few of the tests are sent beside other work
    with TemporaryDirectory() as name, heard():
        attack = Attack(Path(name), seconds, rng, found)
        two = asked.count // 2 if asked.count >= COUNT else 0
        for processes, count in ((1, asked.count - two), (2, two)):
            attack.stop_again_and_again(processes, count)
    return found.conclude()


@contextmanager
def heard() -> Iterator[None]:
    """Let commands get all signals, also where this script was told to ignore some, as by nohup."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number in NUMBERS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Attack:
    """Attack on one recipe by signals.

    Args:
        folder: An empty folder.
        seconds: The time from a signal to the end of the command.
        rng: Draws signals and moments.
        found: Counts them.
    """

    def __init__(self, folder: Path, seconds: float, rng: random.Random, found: tally.Tally) -> None:
        self.folder, self.seconds, self.rng, self.found = folder, seconds, rng, found
        toy.write_pairs(folder, 1009)
        times = {"max_updates": 211, "save_every": 3, "validate_every": 7, "log_every": 1, "accumulate": 2}
        toy.write_recipe(folder, model={"dropout": 0.1}, train=times)
        whole = self.start("whole", 1, [])
        assert whole.follow() == 0, whole.said()
        self.whole = toy.fingerprint(folder / "whole")

    def start(self, run: str, processes: int, options: Sequence[str]) -> Command:
        """Start the command that begins a run, or goes on with it."""
        words = ["train", str(self.folder), "--out", str(self.folder / run), *options]
        return Command(words, self.folder / f"{run}.txt", processes)

    def stop_again_and_again(self, processes: int, count: int) -> None:
        """Stop as many runs as it takes for some signals, each in turn, and let each run end."""
        sent = number = 0
        while sent < count:
            run = f"run-{processes}-{number}"
            number += 1
            with self.found.trial(f"{run} of {processes} processes"):
                stops = self.rng.randint(1, 4)
                for _ in range(min(stops, count - sent)):
                    sent += 1
                    if not self.stop(run, processes):
                        break
                end = self.start(run, processes, [])
                assert end.follow() == 0, end.said()
                assert toy.fingerprint(self.folder / run) == self.whole, f"{run} differs"

    def stop(self, run: str, processes: int) -> bool:
        """Send a signal to a run at a random moment, and check how it ends; False if it was done before.

        Raises:
            AssertionError: it ends too late, with another exit code, or has saved nothing.
        """
        number, requeue = self.rng.choice(NUMBERS), self.rng.random() < 0.5
        begun = self.start(run, processes, ["--requeue"] if requeue else [])
        early = self.rng.random() < 0.4
        self.wait(begun, self.folder / run / ("heedful.lock" if early else "log.jsonl"))
        time.sleep(self.rng.uniform(0, 1))
        if begun.code is not None:
            return False
        told = begun.pid if early else self.rng.choice(begun.processes())
        os.kill(told, number)
        code, took = begun.follow(self.seconds), begun.said()
        begun.end()
        if code == 0:
            return False
        wanted = 75 if requeue and number != signal.SIGINT else 128 + number
        assert code == wanted, f"{number.name}: exit code {code} instead of {wanted}: {took[-2000:]}"
        self.check(run, took)
        where = "before" if "before training" in took.splitlines()[-1] else "in"
        self.found.faults[f"{number.name} {where} training, {processes} process{'es' if processes > 1 else ''}"] += 1
        return True

    def wait(self, begun: Command, file: Path) -> None:
        """Wait until a command has written to a file of the run."""
        before = (file.exists(), file.exists() and file.stat().st_mtime_ns)
        end = time.monotonic() + LONGEST
        while begun.code is None and time.monotonic() < end:
            if (file.exists(), file.exists() and file.stat().st_mtime_ns) != before:
                return
            time.sleep(0.005)

    def check(self, run: str, said: str) -> None:
        """Check that the checkpoint is there that a run has told of last, and nothing half made.

        Raises:
            AssertionError: something is missing, or left over.
        """
        checkpoints = self.folder / run / "checkpoints"
        for update in re.findall(r"stopped and saved after update (\d+)", said)[-1:]:
            newest = max(int(path.name.removeprefix("step-")) for path in checkpoints.glob("step-*"))
            assert newest >= int(update), f"update {update} is not saved"
        left = [path for path in (self.folder / run).rglob(".*") if path.name.startswith((".tmp-", ".old-"))]
        assert not left, f"{left} are left"


if __name__ == "__main__":
    sys.exit(main())
