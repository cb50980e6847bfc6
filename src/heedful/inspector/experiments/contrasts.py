"""Read lists of minimal pairs: text files with one minimal pair per line, in columns separated by tabs."""

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.errors import InputError
from heedful.wording import counted

KINDS = ("pair", "control")
COLUMNS = ("text A", "text B", "form A", "form B", "pair or control")


@dataclass(frozen=True)
class Contrast:
    """Minimal pair from one line of a list: two source texts and two forms.

    Attributes:
        line: number of the line, from 1.
        sources: source texts A and B.
        forms: forms A and B, the outputs to compare.
        kind: one of `KINDS`, "pair" or "control".
    """

    line: int
    sources: tuple[str, str]
    forms: tuple[str, str]
    kind: str


def contrasts(lines: Iterable[str]) -> list[Contrast]:
    """Read a list of minimal pairs: lines of `COLUMNS` separated by tabs, without blank lines and comments (#).

    Raises:
        InputError: a line has another form, or the list is empty; the message has the number of the line.
    """
    found = [contrast(number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1) if says_something(line)]
    if not found:
        raise InputError(f"there are no lines; each has, with tabs between them, {', '.join(COLUMNS)}")
    return found


def says_something(line: str) -> bool:
    """True if a line of a list of minimal pairs is neither blank nor a comment (#)."""
    return bool(line.strip()) and not line.startswith("#")


def contrast(number: int, line: str) -> Contrast:
    """Parse one line of a list of minimal pairs, in columns separated by tabs.

    Raises:
        InputError: the line does not have five filled columns, has an unknown kind, or both forms are equal.
    """
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        columns = ", ".join(COLUMNS)
        raise InputError(f"line {number} has {counted(len(cells), 'columns')}, and not 5: {columns}")
    for name, cell in zip(COLUMNS, cells, strict=True):
        if not cell.strip():
            raise InputError(f"line {number}: {name} is empty")
    source_a, source_b, form_a, form_b, kind = cells
    if kind.strip() not in KINDS:
        raise InputError(f"line {number}: the kind is {' or '.join(KINDS)}, not {kind.strip()!r}")
    if form_a.strip() == form_b.strip():
        raise InputError(f"line {number}: the two forms are the same, so that there is nothing to prefer")
    return Contrast(number, (source_a, source_b), (form_a, form_b), kind.strip())
