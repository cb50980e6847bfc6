"""Reader of the rows of a table with all their cells, so that a command can write them back with its answers."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.readers.files import decode_lines, ending_of, open_bytes
from heedful.data.readers.names import MISSING
from heedful.data.readers.rows import cells_of, parse_object
from heedful.data.readers.unlabelled import read_texts


class WholeRow(NamedTuple):
    """A row of input: the line where it begins, from 1, the texts that are wanted, and all cells, in their order.

    A cell of a .jsonl file is the value of its key, of any kind, or `MISSING`.
    """

    line: int
    texts: tuple[str, ...]
    cells: tuple[object, ...]


def names_of_cells(path: Path, first: int | None) -> tuple[str, ...]:
    """Return the names of all columns: of the header, numbers from 1 where there is none, or the keys of all objects.

    Args:
        path: The table, .tsv, .csv or .jsonl.
        first: The line at which its first row begins, below a header if it has one; None: it has no rows.

    Raises:
        InputError: The file cannot be read.
    """
    if ending_of(path) == ".jsonl":
        return tuple(dict.fromkeys(key for _, values in objects_of(path) for key in values))
    line, cells = next(cells_of(path, "error"), (0, None))
    cells = cells or []
    return tuple(str(number) for number, _ in enumerate(cells, start=1)) if line == first else tuple(cells)


def read_whole_rows(
    path: Path, fields: Sequence[str], columns: Sequence[str], *, turns: bool = False
) -> Iterator[WholeRow]:
    """Yield the rows that `read_texts` yields for some fields, with all their cells.

    Args:
        path: The table.
        fields: Columns or keys by name, or columns by number, from 1.
        columns: The names of all columns, as `names_of_cells` returns them.
        turns: True if a text may be a list of turns of a dialogue, as in `read_texts`.

    Raises:
        InputError: As in `read_texts`.
    """
    every = every_row(path, columns)
    for row in read_texts(path, fields, turns=turns):
        yield WholeRow(row.line, row.texts, next(cells for line, cells in every if line == row.line))


def every_row(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the line and the cells of each row of a table; cells that a row lacks at its end are empty."""
    if ending_of(path) == ".jsonl":
        for line, values in objects_of(path):
            yield line, tuple(values.get(key, MISSING) for key in columns)
        return
    for line, cells in cells_of(path, "error"):
        yield line, tuple(islice([*(cells or ()), *[""] * len(columns)], len(columns)))


def objects_of(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the line and the object of each line of a .jsonl file.

    Raises:
        InputError: The file cannot be read, or a line is not an object.
    """
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8="error"), start=1):
            yield number, parse_object(line or "", f"{path}, line {number}")
