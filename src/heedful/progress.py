"""Progress reports for long-running work, as lines or a progress bar: how much is done, how fast, and the time left.

A thread prints the reports, so that they are on time however long a single step takes.
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

LINES = (5.0, 20.0)  # for reports as lines: seconds before each of the first two, and between later ones
BAR = (0.5, 0.5)  # the same for a bar, which is redrawn
MIN_BAR_WIDTH = 10  # columns of the bar next to a long sentence

T = TypeVar("T")


def printer(console: "Console") -> Callable[[str], None]:
    """Return a function that prints a sentence verbatim: without wrapping, and without treating brackets as markup."""
    return lambda sentence: console.print(sentence, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Count:
    """State of a progress count: the items done, and their speed, in which recent items have more weight.

    The speed is a weighted mean: items from half-way have a quarter of the weight of the latest items, so that a slow
    start soon loses its effect, but regular pauses, such as validations, keep theirs.

    Attributes:
        unit: Name of the items in the plural, such as "lines".
        total: Total number of items; None if it is unknown.
        first: Number of items that were done before counting began.
        done: Number of items that are done.
        begin: Time when counting began, in seconds.
        since: Time when the last item was done.
        items: Weighted number of items done since counting began.
        seconds: Weighted time of these items.
        latest: Time when the work ends even if items are left.
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
        """Return the state after `count` more items."""
        weight = ((self.since - self.begin) / max(now - self.begin, 1e-9)) ** 2  # of all earlier items
        items, seconds = weight * self.items + count, weight * self.seconds + now - self.since
        return replace(self, done=self.done + count, since=now, items=items, seconds=seconds)

    def waiting(self, now: float) -> "Count":
        """Return the state at `now`: a wait for the next item that is longer than `seconds` replaces it.

        Blank lines, for example, take no time, so their speed does not predict the speed of other lines.
        """
        wait = now - self.since
        if wait <= self.seconds or self.done == self.total:
            return self
        return replace(self, since=now, seconds=wait)

    def describe(self, now: float, so_far: str) -> str:
        """Describe the items done, their speed and the time left; `so_far` is the elapsed time in words."""
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
    """Context manager that reports the progress of its block at intervals, from a thread.

    A report is a sentence such as "translating: 1,200 of 5,000 lines, 320 lines/s, 12 s left" or, if nothing is
    counted, "exporting: 25 s so far".

    Args:
        work: Name of the work, such as "translating".
        unit: Name of the items in the plural, such as "lines".
        total: Total number of items; None if it is unknown.
        done: Number of items that are already done, if earlier work is resumed.
        say: Called with each sentence, in the reporter's thread.
        pace: Two intervals in seconds: one before each of the first two reports, the other between later reports.
        clock: Returns the time in seconds.
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

    def begin(self, unit: str, total: int | None) -> None:
        """Start the next part of the work: count `total` items of another unit, from 0; None if it is unknown."""
        now = self._clock()
        self._count = Count(unit, total, 0, 0, now, now)

    def end_within(self, seconds: float) -> None:
        """Limit the reported time left: the work ends within `seconds` even if items are left."""
        self._count = replace(self._count, latest=self._clock() + seconds)

    def advance(self, count: int = 1) -> None:
        self._count = self._count.more(count, self._clock())

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and count each as done when the next is requested."""
        for item in items:
            yield item
            self.advance()

    def part(self, unit: str, items: Sequence[T]) -> Iterator[T]:
        """Start the next part of the work, and yield its items, counting each as done."""
        self.begin(unit, len(items))
        yield from self.over(items)

    @property
    def figures(self) -> str:
        """Items done, their speed and the time left, in words."""
        now = self._clock()
        return self._count.waiting(now).describe(now, f"{duration(now - self._begin)} so far")

    def __str__(self) -> str:
        return f"{self.work}: {self.figures}"

    def _report(self) -> None:
        first, every = self._pace
        with suppress(OSError):  # the output is closed, but the work continues
            for seconds in chain([first, first], repeat(every)):
                if self._end.wait(seconds):
                    return
                self._say(str(self))


def silent(work: str, unit: str = "", total: int | None = None) -> ProgressReporter:
    """Return a progress reporter that counts items but reports nothing."""
    return ProgressReporter(work, unit, total, say=str)  # its thread is never started


@contextmanager
def show_progress(
    work: str, unit: str = "", total: int | None = None, done: int = 0, *, bar: bool = True
) -> Iterator[ProgressReporter]:
    """Report the progress of a `with` block on standard error: as a progress bar at a terminal, otherwise as lines.

    Args:
        bar: False if a bar would disturb other output at the terminal.

    The other arguments are those of `ProgressReporter`.
    """
    console = terminal() if bar else None
    if console is None:
        with ProgressReporter(work, unit, total, done, say=write_line, pace=LINES) as reporter:
            yield reporter
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(), TextColumn("{task.description}", markup=False)
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(shortened(work, beside_bar(console.width)), total=total)

    def draw(_: str) -> None:
        figures, width = reporter.figures, beside_bar(console.width)
        name = shortened(work, width - len(figures) - 2)  # in a narrow terminal, only the name is cut
        progress.update(task, total=reporter.total, completed=reporter.done, description=f"{name}: {figures}")

    reporter = ProgressReporter(work, unit, total, done, say=draw, pace=BAR)
    with progress, reporter:
        yield reporter


def terminal() -> "Console | None":
    """Return the terminal of standard error, or None if standard error is not a terminal that can redraw a line."""
    # rich takes a sixth of the time that a command needs to start, so it is imported only for terminals.
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_interactive else None


def beside_bar(width: int) -> int:
    """Return the number of terminal columns that are left for a sentence next to a progress bar."""
    return width - MIN_BAR_WIDTH - 1


def shortened(text: str, width: int) -> str:
    """Shorten a sentence to `width` terminal columns (at least 1); a shortened sentence ends in "…"."""
    from rich.text import Text

    cells = Text(text)
    cells.truncate(max(width, 1), overflow="ellipsis")
    return cells.plain


def write_line(sentence: str) -> None:
    """Write a sentence and a line feed to standard error, if it is open."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
