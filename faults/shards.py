"""SIGKILL of the processes that translate one folder together, at random times, each COUNT times; then the same on Ray.

Each process is started again after a kill. Every line is there once, in its place, and equal to what one process
makes of it without a job. With fewer kills than usual, there are two processes, few lines and no Ray.
"""

import gzip
import os
import random
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import tally
import toy
from commands import Command, descendants
from rich.console import Console

from heedful.checkpoint.load import load_model
from heedful.data.readers.files import read_lines
from heedful.predictors.translator import Translator
from heedful.training import loop

COUNT, LINES = 5, 200_000
WORKERS, FILES = 3, 23
LONGEST = 3600  # seconds; more is a hang, on a busy machine as well
RAY_STARTS = 5  # every so many kills, Ray itself is killed with the command that started it


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill workers of a job, and compare what they make with the work of one process."""
    asked = tally.options(__doc__, COUNT, arguments, {"lines": 0})
    full = asked.count >= COUNT
    asked.lines = asked.lines or (LINES if full else 7000)
    found, rng = tally.Tally(__file__, asked), random.Random(asked.seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        expected = prepare(folder, asked, rng)
        workers = WORKERS if full else WORKERS - 1
        with found.trial(f"{workers} processes"):
            found.faults["SIGKILLs of processes"] += attack_processes(folder, asked, workers)
            compare(folder / "processes", expected)
        if full:
            with found.trial("Ray"):
                found.faults["SIGKILLs under Ray"] += attack_ray(folder, asked.count * WORKERS, rng)
                compare(folder / "ray", expected)
    return found.conclude()


def prepare(folder: Path, asked: Namespace, rng: random.Random) -> dict[str, str]:
    """Train a translator, write the files to translate, and return what it makes of them by itself."""
    toy.write_pairs(folder)
    loop.train(
        toy.recipe(folder, decode={"max_extra": 3}, train={"max_updates": 151 if asked.count >= COUNT else 19}),
        folder / "run",
        Console(quiet=True),
    )
    cuts = sorted(rng.choices(range(asked.lines), k=FILES - 1))
    (folder / "text").mkdir()
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, asked.lines], strict=True)):
        lines = [" ".join(rng.choices(toy.WORDS, k=rng.randint(0, 5))) for _ in range(begin, end)]
        data = rng.choice(["\n", "\r\n"]).join(lines).encode() + rng.choice([b"", b"\n"]) * bool(lines and lines[-1])
        data += b"\n" * bool(lines and not lines[-1])
        packed = number % 5 == 0
        (folder / "text" / f"{number}{'.gz' * packed}").write_bytes(gzip.compress(data) if packed else data)
    translator = load_model(folder / "run").use_as(Translator).with_options(beam=1)
    files = sorted((folder / "text").iterdir())
    expected = {path.name.removesuffix(".gz"): translator.translate(read_lines(path)) for path in files}
    assert sum(map(len, expected.values())) == asked.lines
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in expected.items()}


def compare(output: Path, expected: dict[str, str]) -> None:
    """Compare the files of results with what one process made."""
    assert {path.name for path in output.iterdir()} == {".job", *expected}
    for name, text in expected.items():
        assert (output / name).read_text(encoding="utf-8") == text, f"{output / name} differs"


def start(folder: Path, output: str, *options: str) -> Command:
    """Start a process that translates the folder with the smallest shards."""
    places = ["--model", str(folder / "run"), "--input", str(folder / "text"), "--output", str(folder / output)]
    words = ["translate", *places, "--beam", "1", "--shard-lines", "1024", "--device", "cpu", "--no-literals", *options]
    return Command(words, folder / f"{output}.txt")


def attack_processes(folder: Path, asked: Namespace, workers: int) -> int:
    """Let processes work on one folder, each in as many lives as it is killed, and one more; return the kills."""
    kills: list[int] = []
    failures: list[str] = []

    def work(number: int) -> None:
        rng = random.Random(f"{asked.seed} {number}")
        for _ in range(asked.count):
            begun = start(folder, "processes")
            wait_for_a_moment(begun, rng)
            kills.append(kill(begun.pid) if begun.code is None else 0)
            begun.follow(LONGEST)
        if (code := end_of(start(folder, "processes"))) != 0:
            failures.append(f"process {number} ended with exit code {code}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return sum(kills)


def attack_ray(folder: Path, kills: int, rng: random.Random) -> int:
    """Kill actors of a Ray job that are at work, and now and then Ray itself; return the kills."""
    begun, done = start(folder, "ray", "--ray"), 0
    while done < kills:
        wait_for_a_moment(begun, rng)
        if begun.code is not None:
            break  # the job is done, or the assertion below tells
        actors = [pid for pid in descendants(begun.pid) if holds_claim(pid)]
        whole = done % RAY_STARTS == RAY_STARTS - 1
        done += kill(begun.pid if whole else rng.choice(actors or [begun.pid]))
        if whole or not actors:
            begun.follow(LONGEST)
            begun = start(folder, "ray", "--ray")
    assert end_of(begun) == 0, "the command with Ray failed"
    return done


def wait_for_a_moment(begun: Command, rng: random.Random) -> None:
    """Wait for a random moment: one in five comes while a command may still start, the others while it is at work."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 6))
        return
    end = time.monotonic() + LONGEST
    while begun.code is None and not any(map(holds_claim, begun.processes())):
        assert time.monotonic() < end, "a worker hangs"
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.5))


def end_of(begun: Command) -> int | None:
    """Wait for the end of a command, and return its exit code; one that hangs is killed."""
    if begun.follow(LONGEST) is None:
        begun.end()
    return begun.code


def holds_claim(pid: int) -> bool:
    """True if a process has the file of a claim open, which it has while it computes a shard or joins a file."""
    try:
        return any(".claim" in os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def kill(pid: int) -> int:
    """Send SIGKILL to a process; return 1, or 0 if it had ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
