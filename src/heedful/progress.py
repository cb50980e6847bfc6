"""Progress reports of long work as sentences or a progress bar: how much is done, how fast, and the time left.

A thread prints the reports, so that they come in time however long a single step takes.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat
from math import inf
from typing import TYPE_CHECKING, Self, TypeVar

from heedful.wording import counted, duration, singular, speed

if TYPE_CHECKING:
    from rich.console import Console

LINES = (5.0, 20.0)  # seconds until the first report, and between later reports, if each is a new line
BAR = (0.5, 0.5)  # seconds until the first report, and between later reports, if each replaces the one before
MIN_BAR_WIDTH = 10  # columns next to a long sentence

T = TypeVar("T")


def printer(console: "Console") -> Callable[[str], None]:
    """Return a function that prints a sentence as it is: on one line, and with the brackets of a file's name."""
    return lambda sentence: console.print(sentence, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Count:
    """State of a progress count: the items done, and their speed, in which recent items weigh more.

    The speed is a weighted mean: items done after half of the time count a quarter as much as items done just now, so
    that a slow beginning is soon forgotten, and pauses that come again and again, such as validations, never are.

    Attributes:
        unit: the name of the items in the plural, such as "lines".
        total: the number of all items; None if it is unknown.
        first: the number of items that were done before counting began.
        done: the number of items that are done.
        begin: the clock in seconds when counting began.
        since: the clock in seconds when the last item was done.
        items: the weighted number of items done since the beginning; earlier items weigh less.
        seconds: the weighted time of these items.
        latest: the clock in seconds when the work ends even if items are left.
    """

    unit: str
    total: int | None
    first: int
    done: int
    begin: float
    since: float
    items: float = 0.0
    seconds: float = 0.0
    latest: float = inf

    def more(self, count: int, now: float) -> "Count":
        """Return the state after `count` more items are done."""
        weight = ((self.since - self.begin) / max(now - self.begin, 1e-9)) ** 2  # of all earlier items
        items, seconds = weight * self.items + count, weight * self.seconds + now - self.since
        return replace(self, done=self.done + count, since=now, items=items, seconds=seconds)

    def waiting(self, now: float) -> "Count":
        """Return the state with the wait for the next item counted as working time, once the wait exceeds that time.

        Blank lines, for example, are done at once, and say nothing about the speed of translating other lines.
        """
        wait = now - self.since
        if wait <= self.seconds or self.done == self.total:
            return self
        return replace(self, since=now, seconds=wait)

    def described(self, now: float, so_far: str) -> str:
        """Describe the items done, their speed and the time left; `so_far` is the time taken, in words."""
        if not self.done and self.total is None:
            return so_far
        count = counted(self.done, self.unit)
        if self.total is not None:
            count = f"{self.done:,} of {counted(self.total, self.unit)}"
        if self.done == self.first:
            return f"{count}, {so_far}"
        rate = self.items / max(self.seconds, 1e-9)
        unit = singular(self.unit) if speed(rate) == "1" else self.unit
        end = so_far
        if self.total is not None and self.done == self.total:
            end = f"nearly finished, {so_far}"
        elif self.total is not None:
            left = min((self.total - self.done) / rate - (now - self.since), self.latest - now)
            end = f"{duration(max(0.0, left))} left"
        return f"{count}, {speed(rate)} {unit}/s, {end}"


class ProgressReporter:
    """Reports the progress of a piece of work at intervals, from a thread, while its `with` block runs.

    A report is a sentence such as "translating: 1,200 of 5,000 lines, 320 lines/s, 12 s left" or, if nothing is
    counted, "exporting: 25 s so far".

    Args:
        work: the name of the work, such as "translating".
        unit: the name of the items that are counted, in the plural, such as "lines".
        total: the number of all items; None if it is unknown.
        done: the number of items that are done already, if earlier work is resumed.
        say: called with each sentence, in the reporter's thread.
        pace: seconds until the first report, and as many until the second, which knows the speed; then seconds
            between later reports.
        clock: returns the seconds since any fixed moment.
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
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def unit(self) -> str:
        return self._count.unit

    @property
    def total(self) -> int | None:
        return self._count.total

    @property
    def done(self) -> int:
        return self._count.done

    def begin(self, unit: str, total: int) -> None:
        """Begin the next part of the work: count `total` items of another unit, from 0."""
        now = self._clock()
        self._count = Count(unit, total, 0, 0, now, now)

    def end_within(self, seconds: float) -> None:
        """Limit the time left: in so many seconds the work ends even if items are left."""
        self._count = replace(self._count, latest=self._clock() + seconds)

    def advance(self, count: int = 1) -> None:
        self._count = self._count.more(count, self._clock())

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items, and count each item as done when the next is asked for."""
        for item in items:
            yield item
            self.advance()

    def part(self, unit: str, items: Sequence[T]) -> Iterator[T]:
        """Begin the next part of the work, and iterate over its items, counting each as done."""
        self.begin(unit, len(items))
        yield from self.over(items)

    @property
    def figures(self) -> str:
        """Progress in numbers: items done, speed up to the last item (or less in a long wait), and time left."""
        now = self._clock()
        return self._count.waiting(now).described(now, f"{duration(now - self._begin)} so far")

    def __str__(self) -> str:
        return f"{self.work}: {self.figures}"

    def _report(self) -> None:
        first, every = self._pace
        with suppress(OSError):  # nobody listens any more, which is no reason to stop working
            for seconds in chain([first, first], repeat(every)):
                if self._end.wait(seconds):
                    return
                self._say(str(self))


def silent(work: str, unit: str = "", total: int | None = None) -> ProgressReporter:
    """Make a progress reporter that counts items but reports nothing."""
    return ProgressReporter(work, unit, total, say=str)  # its thread is never started


@contextmanager
def show_progress(
    work: str, unit: str = "", total: int | None = None, done: int = 0, *, bar: bool = True
) -> Iterator[ProgressReporter]:
    """Report the progress of a `with` block on standard error: as a progress bar at a terminal, elsewhere as lines.

    `bar` is False where a bar would disturb other output at the terminal; the rest is as for a `ProgressReporter`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not (bar and console.is_interactive and console.file.isatty()):
        with ProgressReporter(work, unit, total, done, say=write_line, pace=LINES) as reporter:
            yield reporter
        return
    columns = BarColumn(), TextColumn("{task.description}", markup=False)
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(shortened(work, beside_bar(console.width)), total=total)

    def draw(_: str) -> None:
        figures, room = reporter.figures, beside_bar(console.width)
        name = shortened(work, room - len(figures) - 2)  # the figures are what people wait for
        progress.update(task, total=reporter.total, completed=reporter.done, description=f"{name}: {figures}")

    reporter = ProgressReporter(work, unit, total, done, say=draw, pace=BAR)
    with progress, reporter:
        yield reporter


def beside_bar(width: int) -> int:
    """Number of columns of a terminal for a sentence next to a progress bar."""
    return width - MIN_BAR_WIDTH - 1


def shortened(text: str, width: int) -> str:
    """Shorten a text to at most `width` columns of a terminal, 1 at least; a shortened text ends in "…"."""
    from rich.text import Text

    cells = Text(text)
    cells.truncate(max(width, 1), overflow="ellipsis")
    return cells.plain


def write_line(sentence: str) -> None:
    """Write a sentence and a line feed to standard error, if it is open."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
