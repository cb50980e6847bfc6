"""Lists of minimal pairs as text: a line for each, with tabs between its columns."""

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.errors import InputError
from heedful.wording import counted

KINDS = ("pair", "control")
COLUMNS = ("text A", "text B", "form A", "form B", "pair or control")


@dataclass(frozen=True)
class Contrast:
    """One line of a list.

    Attributes:
        line: its number, from 1.
        sources: what is read, A and B.
        forms: what may follow, A and B.
        kind: one of `KINDS`.
    """

    line: int
    sources: tuple[str, str]
    forms: tuple[str, str]
    kind: str


def contrasts(lines: Iterable[str]) -> list[Contrast]:
    """Read a list: `COLUMNS` with tabs between them; blank lines and those that begin with # say nothing.

    Raises:
        InputError: a line is not like that, or there is none; the message has its number.
    """
    found = [contrast(number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1) if says_something(line)]
    if not found:
        raise InputError(f"there are no lines; each has, with tabs between them, {', '.join(COLUMNS)}")
    return found


def says_something(line: str) -> bool:
    """Whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.startswith("#")


def contrast(number: int, line: str) -> Contrast:
    """Read one line.

    Raises:
        InputError: as `contrasts`.
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
