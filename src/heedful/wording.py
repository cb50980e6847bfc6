"""Formatting for messages: counts (1 line, 1,200 lines), alternatives, durations, speeds, and file names."""

from collections.abc import Iterable
from pathlib import Path


def counted(number: int, things: str) -> str:
    """Format a number of things, as in "1 line" and "1,200 lines"; `things` is the plural noun."""
    return f"{number:,} {singular(things) if number == 1 else things}"


def singular(things: str) -> str:
    """Return the singular of a regular English plural, such as "query" for "queries" and "batch" for "batches"."""
    thing, of, whole = things.partition(" of ")
    if of:  # such as "seconds of audio"
        return f"{singular(thing)}{of}{whole}"
    if things.endswith("ies"):
        return f"{things[:-3]}y"
    return things.removesuffix("es" if things.endswith(("ches", "sses")) else "s")


def part_of(number: int, total: int, things: str) -> str:
    """Format a part of some things, as in "2 of 1,200 lines"; all of one thing is "the line"."""
    return f"the {singular(things)}" if total == 1 else f"{number:,} of {total:,} {things}"


def were(number: int) -> str:
    """Return "was" for one thing, and "were" for several."""
    return "was" if number == 1 else "were"


def either(alternatives: Iterable[object]) -> str:
    """Join alternatives, as in "a", "a or b" and "a, b or c"."""
    *others, last = map(str, alternatives)
    return f"{', '.join(others)} or {last}" if others else last


def all_of(things: Iterable[object]) -> str:
    """Join things, as in "a", "a and b" and "a, b and c"."""
    *others, last = map(str, things)
    return f"{', '.join(others)} and {last}" if others else last


def did_you_mean(names: Iterable[object]) -> str:
    """Return a question that suggests names, such as: did you mean "train" or "test"?"""
    quoted = (f'"{name}"' for name in names)
    return f"did you mean {either(quoted)}?"


def duration(seconds: float) -> str:
    """Format a duration in seconds in the unit that fits: 42 s, 12 min, 3.5 h; never less than 0 s."""
    seconds = max(seconds, 0.0)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def speed(rate: float) -> str:
    """Format a rate per second, as a whole number if it is at least 10, otherwise with two significant digits."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def shown_name(path: Path) -> str:
    """Return the name of a file without its folder; bytes that are not UTF-8 become U+FFFD."""
    return path.name.encode(errors="surrogateescape").decode(errors="replace")
