"""Counts of the attacks of `make faults`: options, trials that hold or fail, and a dated line beside the script."""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import record


def options(
    description: str | None, count: int, arguments: Sequence[str] | None, more: Mapping[str, int] | None = None
) -> argparse.Namespace:
    """Read the options of a script: `--count` attacks, drawn with `--seed`.

    Args:
        description: the docstring of the script.
        count: the number of attacks that `make faults` makes.
        arguments: what the script is given; None: the command line.
        more: other options of the script, which are numbers, with their defaults.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    for name, default in (more or {}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args(arguments)


class Tally:
    """Tally of a script: how many trials held, how many failed, and how many faults of each kind they met.

    Args:
        script: the `__file__` of the script, which the line of results is written beside.
        asked: the options of the script.
    """

    def __init__(self, script: str, asked: argparse.Namespace) -> None:
        self.script = script
        self.asked = asked
        self.passed = self.failed = 0
        self.faults: Counter[str] = Counter()
        self.begin = time.monotonic()

    @contextmanager
    def trial(self, name: str) -> Iterator[None]:
        """Count one trial: it holds if its block ends without an exception, such as that of an `assert`."""
        try:
            yield
        except Exception:
            self.failed += 1
            sys.stdout.write(f"FAILED: {name}\n{traceback.format_exc()}")
        else:
            self.passed += 1

    def conclude(self, threads: int = 1) -> int:
        """Print the faults and "N passed, N failed", append both to the script's .jsonl file; return the exit code."""
        seconds = round(time.monotonic() - self.begin)
        for kind, count in sorted(self.faults.items()):
            sys.stdout.write(f"{count} {kind}\n")
        sys.stdout.write(f"{self.passed} passed, {self.failed} failed\n")
        facts: dict[str, Any] = {"passed": self.passed, "failed": self.failed, "faults": dict(self.faults)}
        record.append(self.script, record.machine(threads) | vars(self.asked) | facts | {"seconds": seconds})
        return min(self.failed, 1)
