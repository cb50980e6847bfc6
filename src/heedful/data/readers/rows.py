"""Rows of a table (.tsv or .csv) or of JSON objects (.jsonl), their separators, and names as people write them."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from math import isnan
from pathlib import Path
from typing import NamedTuple

from heedful.data.readers.chat_messages import context_of
from heedful.data.readers.files import BadUtf8, decode_lines, decode_unfolded, decode_utf8, ending_of, open_bytes
from heedful.errors import InputError
from heedful.wording import counted


class Missing:
    """Type of `MISSING`, which stands for the value of a key that a JSON object lacks."""


MISSING = Missing()


def find_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is meant: an equal one, or the only one that differs in case or outer spaces alone."""
    if name in known:
        return name
    meant = {other for other in known if folded(other) == folded(name)}
    return meant.pop() if len(meant) == 1 else None


def hint_of_name(name: str, known: Sequence[str]) -> str:
    """Return " (did you mean ...?)" with the known names that are near a name, or an empty text if there are none."""
    names = {folded(other): other for other in known}
    near = get_close_matches(folded(name), names, n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(names[match]) for match in near)}?)" if near else ""


def folded(name: str) -> str:
    """Return a name as names are compared: without regard to case and outer spaces."""
    return name.strip().casefold()


FIRST_LINES = 1000
SEPARATORS = {"tabs": "\t", "commas": ",", "semicolons": ";"}
CHARACTERS = {**SEPARATORS, "pipes": "|"}
NAMED = {".tsv": "tabs", ".csv": "commas"}
OBJECTS = "a JSON object a line"
AGREEING = 0.9  # the share of the rows that are as wide as the first one, where that many columns are meant
DECLARED = re.compile(r'"?sep=([\t,;|])"?', re.IGNORECASE)  # the first line of a table from Excel may say so
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
SEPARATOR_REMEDIES = {
    "tabs": "give it a name that ends in .tsv",
    "commas": "give it a name that ends in .csv or, if it has one text a line and no columns, in .txt",
    "semicolons": "give it a name that ends in .csv",
    "pipes": "give it a name that ends in .csv",
}


def separator_of(path: Path, bad_utf8: BadUtf8) -> str:
    """Return what separates the columns of a table, a key of `CHARACTERS`.

    It is what the ending of the name says or, where that does not cut the first lines into columns, what does: many
    programs write semicolons or tabs into .csv files. A .txt file has tabs.
    """
    named = NAMED.get(ending_of(path))
    if named is None:
        return "tabs"
    lines = first_lines(path, bad_utf8)
    if lines and _holds_object(lines[0]):
        raise InputError(
            f"{path}: it seems to hold {OBJECTS}, where a {ending_of(path)} file has {named} between its columns; give "
            "it a name that ends in .jsonl"
        )
    if lines and (declared := DECLARED.fullmatch(lines[0].strip(" "))):
        return next(name for name, character in CHARACTERS.items() if character == declared[1])
    names = dict.fromkeys((named, *CHARACTERS)) if len(lines) > 1 else [named]  # one line alone shows too little
    cutting = [name for name in names if width(lines, name) > 1]
    if len(cutting) > 1 and "commas" in cutting and not any("," in DECIMAL_COMMA.sub("", line) for line in lines):
        cutting.remove("commas")  # they are inside numbers, as in 4,37
    return cutting[0] if cutting else named


def check_objects(path: Path, bad_utf8: BadUtf8) -> None:
    """Refuse a file of JSON objects by its name that is a table by its contents."""
    lines = first_lines(path, bad_utf8)
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return  # if it is broken, the reader says how
    for separator in CHARACTERS:
        if (columns := width(lines, separator)) > 1:
            raise InputError(
                f"{path}: it seems to have {columns} columns with {separator} between them, where a "
                f"{ending_of(path)} file has {OBJECTS}; {SEPARATOR_REMEDIES[separator]}"
            )


def first_lines(path: Path, bad_utf8: BadUtf8) -> list[str]:
    with open_bytes(path) as stream:
        return [line for line in islice(decode_lines(stream, str(path), bad_utf8=bad_utf8), FIRST_LINES) if line]


def _holds_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def width(lines: Iterable[str], separator: str) -> int:
    """Return the number of cells in the first row of a table; 1 where other rows differ, but for a few broken ones.

    The last row may be cut off and is ignored.
    """
    quoting = csv.QUOTE_NONE if separator == "tabs" else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader((f"{line}\n" for line in lines), delimiter=CHARACTERS[separator], quoting=quoting))
    except csv.Error:
        return 1
    widths = [len(row) for row in rows[:-1] or rows]
    return widths[0] if widths and widths.count(widths[0]) >= AGREEING * len(widths) else 1


# The names that mean the first columns of a table without a header.
USUAL_FIELDS = (("source",), ("source", "target"), ("source", "pair"), ("source", "pair", "target"))

OPTIONS = "(commands that read tables have options for that, such as --column)"

JSON_KINDS = {
    bool: "truth value",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
    type(None): "null",
}

WIDTH_REMEDIES = {  # for a row that is shorter or longer than others
    ".csv": "fix it or take it out. A text that holds {separator} or line ends is written in quotes",
    ".tsv": "fix it or take it out. Texts that hold {separator} or line ends fit into .csv, in quotes, or into .jsonl",
}

Cells = tuple[int, list[str] | None]  # the line at which a row of a table begins, and its cells; None: to be skipped


class RawRow(NamedTuple):
    """A row of a table or .jsonl file: the line where it begins, from 1, and its fields, None for bad UTF-8 to skip."""

    line: int
    texts: tuple[str | None, ...]


class Fields(NamedTuple):
    """The wanted fields of a row, in order.

    In JSON the value of `label` may also be a number, true, false or null, and with `turns` a text may be a list of
    turns, which are joined with tabs.
    """

    names: Sequence[str]
    label: str | None = None
    turns: bool = False


def rows_of_table(path: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    r"""Yield the rows of a table, whatever separates its columns.

    Between the tabs of a .tsv file a quote is a character like any other. Elsewhere a quoted text may hold separators
    and line ends, a blank line is not a row, and a line end inside a text stays as it is; a line of bad UTF-8 cannot be
    skipped, since it may end a quotation.
    """
    separators = separator_of(path, bad_utf8)
    columns: list[int] | None = None
    width = 0  # of the first row
    for line, cells in cells_of(path, bad_utf8):
        if cells is None:
            yield RawRow(line, (None,) * len(fields.names))
            continue
        if columns is None:
            width = len(cells)
            columns, is_header = _columns(cells, fields.names, path)
            if is_header:
                continue
        # A column that the first row lacks is a wrong name; one that this row alone lacks is a broken row.
        if max(columns) >= width:
            raise InputError(
                f"{path}, line {line}: {counted(len(cells), 'columns')}, but column {max(columns) + 1} is wanted; "
                f"columns are separated by {separators}. Set source_field and target_field to columns that are there "
                f"{OPTIONS}"
            )
        if not max(columns) < len(cells) <= width:
            remedy = WIDTH_REMEDIES.get(ending_of(path), WIDTH_REMEDIES[".tsv"]).format(separator=separators)
            raise InputError(
                f"{path}, line {line}: this row is broken: it has {counted(len(cells), 'columns')}, and the first row "
                f"has {width:,}; {remedy}"
            )
        yield RawRow(line, tuple(cells[column] for column in columns))


def rows_of_objects(path: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    """Yield the rows of a .jsonl file, one JSON object a line; a label that is no text is kept as its JSON.

    A label that is null becomes an empty text, like a missing label in a table.
    """
    check_objects(path, bad_utf8)
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=bad_utf8), start=1):
            if line is None:
                yield RawRow(number, (None,) * len(fields.names))
                continue
            values = parse_object(line, f"{path}, line {number}")
            raw = [_text_of(values, name, fields, f"{path}, line {number}") for name in fields.names]
            yield RawRow(number, tuple(decode_utf8(text, str(path), number, bad_utf8) for text in raw))


def cells_of(path: Path, bad_utf8: BadUtf8) -> Iterator[Cells]:
    """Yield the line number and the cells of each row of a table, whatever separates its columns."""
    name = separator_of(path, bad_utf8)
    separator = CHARACTERS[name]
    with open_bytes(path) as stream:
        if name == "tabs" and ending_of(path) != ".csv":
            for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=bad_utf8), start=1):
                yield number, None if line is None else line.split("\t")
            return

        def whole_lines() -> Iterator[str]:
            for number, line in enumerate(decode_unfolded(stream, str(path), bad_utf8=bad_utf8), start=1):
                if line is None:
                    raise InputError(
                        f"{path}, line {number}: not valid UTF-8; a row of CSV may span lines, so one line cannot be "
                        "skipped: convert the file, or have what is lost marked, with `heedful init --bad-utf8 "
                        'replace` or with data.bad_utf8 = "replace" in a recipe'
                    )
                yield line

        reader = csv.reader(whole_lines(), strict=True, delimiter=separator)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(
                    f"{path}, line {line}: not sound CSV ({error}); a text that holds quotes is written in quotes, "
                    "with its own doubled. Tables without quoting are .tsv files; very long texts fit into .jsonl"
                ) from error
            if cells and not (line == 1 and DECLARED.fullmatch(separator.join(cells))):  # `sep=;` is not a row
                yield line, cells


def _columns(first_row: list[str], names: Sequence[str], path: Path) -> tuple[list[int], bool]:
    """Return the columns of the fields, from 0, and whether the first row is a header.

    A number is a place and no name: the first row of unnamed data may hold a label that is the same number.
    """
    is_header = names_columns(names, first_row)
    if not is_header and tuple(names) in USUAL_FIELDS:
        return list(range(len(names))), False
    columns = []
    for name in names:
        if name.isdecimal() and int(name) > 0:
            columns.append(int(name) - 1)
        elif (meant := find_name(name, first_row)) is not None:
            columns.append(first_row.index(meant))
        else:
            raise InputError(
                f"{path}: no column is named {name!r}{hint_of_name(name, first_row)}; the first line has "
                f"{', '.join(map(repr, first_row[:20]))}. Set source_field and target_field (and pair_field) to names "
                f"in it, or to column numbers from 1 {OPTIONS}"
            )
    return columns, is_header


def names_columns(names: Sequence[str], first_row: Sequence[str]) -> bool:
    """True if a first row has one of some names of columns.

    Where the names are the usual ones, which a recipe has by default, other letters count only if all of them are
    there: the first row of a dictionary may hold "Source", and a table of reviews a column "Source" of their origin.
    """
    words = [name for name in names if not name.isdecimal()]
    if any(name in first_row for name in words):
        return True
    alike = [find_name(name, first_row) is not None for name in words]
    return len(words) > 1 and all(alike) if tuple(names) in USUAL_FIELDS else any(alike)


def parse_object(line: str, place: str) -> dict[str, object]:
    """Parse one line of a .jsonl file and return its JSON object."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); each line must be one object") from error
    if not isinstance(values, dict):
        raise InputError(f"{place}: a JSON {JSON_KINDS[type(values)]}, not an object; each line must be one object")
    return values


def is_missing(value: object) -> bool:
    """True for null, and for NaN, with which Python and pandas write a missing value."""
    return value is None or (isinstance(value, float) and isnan(value))


def _text_of(values: dict[str, object], key: str, fields: Fields, place: str) -> bytes:
    """Return a text value as bytes, to be decoded: an escaped lone surrogate is text to JSON but not to UTF-8."""
    meant = find_name(key, list(values))
    if meant is None:
        keys = ", ".join(map(repr, list(values)[:20])) or "none"
        raise InputError(
            f"{place}: no key {key!r}{hint_of_name(key, list(values))}; it has {keys}. Set source_field and "
            f"target_field (and pair_field) to its keys {OPTIONS}"
        )
    value = values[meant]
    value = None if is_missing(value) else value
    if fields.turns and isinstance(value, list):
        value = context_of(value) or value
    if key == fields.label and isinstance(value, int | float | None):
        value = "" if value is None else json.dumps(value)
    if value is None:
        raise InputError(f"{place}: the value of {key!r} is null, which is no text; fill it in, or take the line out")
    if not isinstance(value, str):
        remedy = "name another key" if isinstance(value, list | dict) else "put it in quotes"
        raise InputError(f"{place}: the value of {key!r} is a JSON {JSON_KINDS[type(value)]}, not text; {remedy}")
    return value.encode("utf-8", "surrogatepass")


READERS = {".tsv": rows_of_table, ".csv": rows_of_table, ".jsonl": rows_of_objects}
