"""Progress of long work in sentences: how much is done, how fast it goes, and how long it will still take.

A thread says them, so that they come in time however long a single step takes.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Self, TypeVar

from heedful.wording import counted, duration, singular, speed

LINES = (5.0, 20.0)  # seconds until the first sentence, and from the second on to the next, where each is a line
BAR = (0.5, 0.5)  # the same where each replaces the one before
SHORTEST_BAR = 10  # columns that a bar keeps beside a long sentence

T = TypeVar("T")


@dataclass(frozen=True)
class Count:
    """A moment of counting: so many are done, at such a speed.

    The speed is a mean that forgets: what was done after half of the time counts a quarter of what was done just now,
    so that a slow beginning is soon forgotten, and pauses that come again and again, such as validations, never are.

    Attributes:
        unit: What is counted, such as "lines".
        total: How many of them there are; None if nobody knows.
        first: How many were done before.
        done: How many are done.
        begin: When counting began.
        since: When the last one was done.
        items: How many were done since the beginning, the earlier the less.
        seconds: How long these took, the earlier the less.
    """

    unit: str
    total: int | None
    first: int
    done: int
    begin: float
    since: float
    items: float = 0.0
    seconds: float = 0.0

    def more(self, count: int, now: float) -> "Count":
        """Count some more as done."""
        remembered = ((self.since - self.begin) / max(now - self.begin, 1e-9)) ** 2
        return replace(
            self,
            done=self.done + count,
            since=now,
            items=remembered * self.items + count,
            seconds=remembered * self.seconds + now - self.since,
        )

    def waiting(self, now: float) -> "Count":
        """Count a wait for the next one as time that the others took, once it is longer than theirs.

        Blank lines, say, are done at once, and promise nothing of those that are translated.
        """
        waited = now - self.since
        if waited <= self.seconds or self.done == self.total:
            return self
        return replace(self, since=now, seconds=waited)

    def described(self, now: float, so_far: str) -> str:
        """Say how many are done, how fast, and how long the others will take; `so_far` tells how long all has taken."""
        if not self.done and self.total is None:
            return so_far
        count = counted(self.done, self.unit)
        if self.total is not None:
            count = f"{self.done:,} of {counted(self.total, self.unit)}"
        if self.done == self.first:
            return f"{count}, {so_far}"
        rate = self.items / max(self.seconds, 1e-9)
        unit = singular(self.unit) if speed(rate) == "1" else self.unit
        return f"{count}, {speed(rate)} {unit}/s, {self.end(now, rate, so_far)}"

    def end(self, now: float, rate: float, so_far: str) -> str:
        """Say how long the others will take at a speed, where that is known."""
        if self.total is None:
            return so_far
        if self.done == self.total:
            return f"nearly finished, {so_far}"
        return f"{duration((self.total - self.done) / rate - (now - self.since))} left"


class ProgressReporter:
    """Says how far a piece of work is, again and again while its `with` block runs.

    A sentence is "translating: 1,200 of 5,000 lines, 320 lines/s, 12 s left". Where nothing is counted, it is
    "exporting: 25 s so far".

    Args:
        work: What is being done, such as "translating".
        unit: What is counted, such as "lines".
        total: How many of them there are; None if nobody knows.
        done: How many are done already, of work that goes on.
        say: Gets each sentence, in a thread of its own.
        pace: Seconds until the first sentence, and as many until the second, which knows the speed; and then from one
            to the next.
        clock: Seconds since any fixed moment.
    """

    def __init__(
        self,
        work: str,
        unit: str = "",
        total: int | None = None,
        done: int = 0,
        *,
        say: Callable[[str], object],
        pace: tuple[float, float] = LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.work = work
        self._say, self._pace, self._clock = say, pace, clock
        self._begin = clock()
        self._count = Count(unit, total, done, done, self._begin, self._begin)
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._teller.join()

    @property
    def unit(self) -> str:
        """The name of what is counted."""
        return self._count.unit

    @property
    def total(self) -> int | None:
        """The number of all of them; None if nobody knows."""
        return self._count.total

    @property
    def done(self) -> int:
        """The number of those that are done."""
        return self._count.done

    def begin(self, unit: str, total: int) -> None:
        """Count something else from now on, from 0: the next part of the same work."""
        now = self._clock()
        self._count = Count(unit, total, 0, 0, now, now)

    def advance(self, count: int = 1) -> None:
        """Count some more as done."""
        self._count = self._count.more(count, self._clock())

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items themselves; each is done when the next one is asked for."""
        for item in items:
            yield item
            self.advance()

    def part(self, unit: str, items: Sequence[T]) -> Iterator[T]:
        """The items themselves, which are the next part of the work."""
        self.begin(unit, len(items))
        yield from self.over(items)

    @property
    def figures(self) -> str:
        """The state of the work in numbers; the speed is that up to the last item, or less in a long wait."""
        now = self._clock()
        return self._count.waiting(now).described(now, f"{duration(now - self._begin)} so far")

    def __str__(self) -> str:
        return f"{self.work}: {self.figures}"

    def _tell(self) -> None:
        first, every = self._pace
        with suppress(OSError):  # nobody listens any more, which is no reason to stop working
            for seconds in chain([first, first], repeat(every)):
                if self._ended.wait(seconds):
                    return
                self._say(str(self))


def silent(work: str, unit: str = "", total: int | None = None) -> ProgressReporter:
    """A reporter that counts and says nothing."""
    return ProgressReporter(work, unit, total, say=str)  # its thread is never started


@contextmanager
def show_progress(
    work: str, unit: str = "", total: int | None = None, *, bar: bool = True
) -> Iterator[ProgressReporter]:
    """Say on standard error how far a piece of work is: as a progress bar at a terminal, elsewhere as lines.

    Args:
        work: As in `ProgressReporter`.
        unit: As in `ProgressReporter`.
        total: As in `ProgressReporter`.
        bar: Whether a bar may be drawn at a terminal; it disturbs other output that appears there.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not (bar and console.is_interactive and console.file.isatty()):
        with ProgressReporter(work, unit, total, say=write_line, pace=LINES) as reporter:
            yield reporter
        return
    columns = BarColumn(), TextColumn("{task.description}", markup=False)
    drawn = Progress(*columns, console=console, transient=True)
    task = drawn.add_task(shortened(work, beside_bar(console.width)), total=total)

    def draw(_: str) -> None:
        figures, room = reporter.figures, beside_bar(console.width)
        name = shortened(work, room - len(figures) - 2)  # the figures are what people wait for
        drawn.update(task, total=reporter.total, completed=reporter.done, description=f"{name}: {figures}")

    reporter = ProgressReporter(work, unit, total, say=draw, pace=BAR)
    with drawn, reporter:
        yield reporter


def beside_bar(width: int) -> int:
    """The columns of a terminal that are left for a sentence beside a bar."""
    return width - SHORTEST_BAR - 1


def shortened(text: str, width: int) -> str:
    """A text in at most so many columns of a terminal, but one at least; what is cut off ends in "…"."""
    from rich.text import Text

    shown = Text(text)
    shown.truncate(max(width, 1), overflow="ellipsis")
    return shown.plain


def write_line(sentence: str) -> None:
    """Write a line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
