"""Rows of a table (.tsv or .csv) or of JSON objects (.jsonl), their separators, and column names."""

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
from heedful.data.readers.files import BadUtf8, decode_utf8, ending_of, numbered_lines
from heedful.errors import InputError
from heedful.wording import counted, either


class Missing:
    """Type of `MISSING`, the value of a key that a JSON object lacks."""


MISSING = Missing()


def find_name(name: str, names: Sequence[str]) -> str | None:
    """Return `name` if it is in `names`, else the only name that differs just in case or outer spaces, or None."""
    if name in names:
        return name
    alike = {other for other in names if folded(other) == folded(name)}
    return alike.pop() if len(alike) == 1 else None


def hint_of_name(name: str, names: Sequence[str]) -> str:
    """Return " (did you mean ...?)" with the names that are similar to `name`, or an empty string if there are none."""
    by_folded = {folded(other): other for other in names}
    near = get_close_matches(folded(name), by_folded, n=2, cutoff=0.6)
    return f" (did you mean {either(repr(by_folded[match]) for match in near)}?)" if near else ""


def folded(name: str) -> str:
    """Return a name casefolded and without surrounding spaces, for comparisons."""
    return name.strip().casefold()


FIRST_LINES = 1000  # number of lines that determine the separator
SEPARATORS = {"tabs": "\t", "commas": ",", "semicolons": ";"}
CHARACTERS = {**SEPARATORS, "pipes": "|"}
USUAL_SEPARATORS = {".tsv": "tabs", ".csv": "commas"}
OBJECTS = "one JSON object per line"
MIN_AGREEMENT = 0.9  # minimum share of rows that must be as wide as the first one
DECLARED = re.compile(r'"?sep=([\t,;|])"?', re.IGNORECASE)  # a first line that tells Excel the separator
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
SEPARATOR_REMEDIES = {
    "tabs": "give it a name that ends in .tsv",
    "commas": "give it a name that ends in .csv or, if it has one text per line and no columns, in .txt",
    "semicolons": "give it a name that ends in .csv",
    "pipes": "give it a name that ends in .csv",
}


def separator_of(path: Path, bad_utf8: BadUtf8) -> str:
    """Return the separator of a table's columns, as a key of `CHARACTERS`.

    A .txt file has tabs. In other files, a first line such as `sep=;` decides. Without it, the separator is the one of
    the file extension or, if that does not split the first lines into columns, one that does: many programs write
    semicolons or tabs to .csv files.
    """
    named = USUAL_SEPARATORS.get(ending_of(path))
    if named is None:
        return "tabs"
    lines = first_lines(path, bad_utf8)
    if lines and _holds_object(lines[0]):
        raise InputError(
            f"{path}: it seems to contain {OBJECTS}, but {named} separate the columns of a {ending_of(path)} file; "
            "give it a name that ends in .jsonl"
        )
    if lines and (declared := DECLARED.fullmatch(lines[0].strip(" "))):
        return next(name for name, character in CHARACTERS.items() if character == declared[1])
    # The extension's separator comes first, so that it wins if others split the lines as well.
    names = dict.fromkeys((named, *CHARACTERS)) if len(lines) > 1 else [named]  # a single line shows too little
    candidates = [name for name in names if width(lines, name) > 1]
    if len(candidates) > 1 and "commas" in candidates and not any("," in DECIMAL_COMMA.sub("", line) for line in lines):
        candidates.remove("commas")  # all commas are decimal commas, as in 4,37
    return candidates[0] if candidates else named


def check_objects(path: Path, bad_utf8: BadUtf8) -> None:
    """Reject a .jsonl file that contains a table."""
    lines = first_lines(path, bad_utf8)
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return  # the reader reports invalid JSON
    for separator in CHARACTERS:
        if (columns := width(lines, separator)) > 1:
            raise InputError(
                f"{path}: it seems to have {columns} columns separated by {separator}, but a "
                f"{ending_of(path)} file has {OBJECTS}; {SEPARATOR_REMEDIES[separator]}"
            )


def first_lines(path: Path, bad_utf8: BadUtf8) -> list[str]:
    return [line for _, line in islice(numbered_lines(path, bad_utf8), FIRST_LINES) if line]


def _holds_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def width(lines: Iterable[str], separator: str) -> int:
    """Return the number of cells in the first row of `lines`, or 1 if too many rows have a different number.

    The last row is ignored, because `lines` may end inside it.
    """
    # Between tabs, a quote is usually part of the text; if it were read as CSV, it could join all lines after it.
    quoting = csv.QUOTE_NONE if separator == "tabs" else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader((f"{line}\n" for line in lines), delimiter=CHARACTERS[separator], quoting=quoting))
    except csv.Error:
        return 1
    widths = [len(row) for row in rows[:-1] or rows]
    return widths[0] if widths and widths.count(widths[0]) >= MIN_AGREEMENT * len(widths) else 1


# In a table without a header, these names stand for the first columns.
USUAL_FIELDS = (("source",), ("source", "target"), ("source", "pair"), ("source", "pair", "target"))

# The recipe's keys; `heedful evaluate` has options for the columns of another test set.
SET_COLUMNS = "Set source_field and target_field (and pair_field)"

JSON_KINDS = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
    type(None): "null",
}

WIDTH_REMEDIES = {  # for a row that is shorter or longer than others
    ".csv": "fix or remove it. Quote text that contains {separator} or line breaks",
    ".tsv": "fix or remove it. For text that contains {separator} or line breaks, use .csv with quotes, or .jsonl",
}

Cells = tuple[int, list[str] | None]  # the line number where a row begins; its cells, or None if the row is skipped


class RawRow(NamedTuple):
    """A row of a table or .jsonl file: the line number where it begins, and its fields; None for skipped bad UTF-8."""

    line: int
    texts: tuple[str | None, ...]


class Fields(NamedTuple):
    """The fields of a row to read, in order.

    In JSON, the value of `label` may also be a number, true, false or null, and with `turns` a text may be a list of
    turns, which are joined with tabs.
    """

    names: Sequence[str]
    label: str | None = None
    turns: bool = False


def rows_of_table(path: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    r"""Yield the rows of a table, whatever separates its columns.

    Between the tabs of a .tsv or .txt file, a quote is a character like any other. In other tables, quoted text may
    contain separators and line breaks, which are kept; a blank line is not a row; and a line with bad UTF-8 cannot be
    skipped, because it may end a quoted text.
    """
    columns: list[int] | None = None
    width = 0  # of the first row
    for line, cells in cells_of(path, bad_utf8):
        if cells is None:
            yield RawRow(line, (None,) * len(fields.names))
            continue
        if columns is None:
            width = len(cells)
            if width < len(fields.names):
                raise InputError(
                    f"{path}, line {line}: has {counted(width, 'columns')}, but {len(fields.names)} are needed "
                    f"({', '.join(fields.names)}); columns are separated by {separator_of(path, bad_utf8)}. Give a "
                    "table with these columns"
                )
            columns, is_header = _columns(cells, fields.names, path)
            if is_header:
                continue
        # If the first row lacks a column, its number is wrong; if only this row lacks it, the row is malformed.
        if max(columns) >= width:
            raise InputError(
                f"{path}, line {line}: has {counted(len(cells), 'columns')}, but column {max(columns) + 1} is needed; "
                f"columns are separated by {separator_of(path, bad_utf8)}. {SET_COLUMNS} to "
                "existing columns"
            )
        if not max(columns) < len(cells) <= width:
            remedy = WIDTH_REMEDIES.get(ending_of(path), WIDTH_REMEDIES[".tsv"])
            raise InputError(
                f"{path}, line {line}: malformed row: {counted(len(cells), 'columns')}, but the first row "
                f"has {width:,}; {remedy.format(separator=separator_of(path, bad_utf8))}"
            )
        yield RawRow(line, tuple(cells[column] for column in columns))


def rows_of_objects(path: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    """Yield the rows of a .jsonl file, one JSON object per line.

    A label that is a number or a boolean is kept as JSON text. A label that is null or NaN becomes an empty text, as a
    missing label in a table is.
    """
    check_objects(path, bad_utf8)
    first_keys: list[str] | None = None
    for number, values in objects_of(path, bad_utf8):
        if values is None:
            yield RawRow(number, (None,) * len(fields.names))
            continue
        if first_keys is None:
            first_keys = list(values)
        raw = [_text_of(values, name, fields, first_keys, f"{path}, line {number}") for name in fields.names]
        yield RawRow(number, tuple(decode_utf8(text, str(path), number, bad_utf8) for text in raw))


def objects_of(path: Path, bad_utf8: BadUtf8) -> Iterator[tuple[int, dict[str, object] | None]]:
    """Yield the number and the JSON object of each line of a .jsonl file; the object is None for skipped bad UTF-8."""
    for number, line in numbered_lines(path, bad_utf8):
        yield number, None if line is None else parse_object(line, f"{path}, line {number}")


def cells_of(path: Path, bad_utf8: BadUtf8) -> Iterator[Cells]:
    """Yield the line number and the cells of each row of a table, whatever separates its columns."""
    name = separator_of(path, bad_utf8)
    separator = CHARACTERS[name]
    # Programs that write tabs to a .csv file still quote as in CSV; a .tsv file has no quoting.
    if name == "tabs" and ending_of(path) != ".csv":
        for number, line in numbered_lines(path, bad_utf8):
            yield number, None if line is None else line.split("\t")
        return

    def csv_lines() -> Iterator[str]:
        # Keep line breaks, because they belong to the text inside quotes.
        for number, line in numbered_lines(path, bad_utf8, ends="keep"):
            if line is None:
                raise InputError(
                    f"{path}, line {number}: not valid UTF-8; a CSV row may span lines, so one line cannot be "
                    "skipped: convert the file, or replace the invalid bytes, with `heedful init --bad-utf8 "
                    'replace` or with data.bad_utf8 = "replace" in a recipe'
                )
            yield line

    reader = csv.reader(csv_lines(), strict=True, delimiter=separator)
    while True:
        # The line where the next row begins: a row may span lines, and `line_num` counts those read so far.
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = (
                "a field that contains quotes must be in quotes, and its quotes doubled. Use .tsv for tables without "
                "quotes, and .jsonl for very long texts"
            )
            if "unexpected end" in str(error):
                remedy = (
                    "a quote that opens in this row is never closed. Close it, or use .tsv for tables without quotes"
                )
            raise InputError(f"{path}, line {line}: not valid CSV ({error}); {remedy}") from error
        if cells and not (line == 1 and DECLARED.fullmatch(separator.join(cells))):  # `sep=;` is not a row
            yield line, cells


def _columns(first_row: list[str], names: Sequence[str], path: Path) -> tuple[list[int], bool]:
    """Return the columns of the fields, counted from 0, and True if the first row is a header.

    A number is a position, not a name: the first row of unnamed data may contain a label that is the same number.
    """
    is_header = names_columns(names, first_row)
    if not is_header and tuple(names) in USUAL_FIELDS:
        return list(range(len(names))), False
    columns = []
    for name in names:
        if name.isdecimal() and int(name) > 0:
            columns.append(int(name) - 1)
        elif (column := find_name(name, first_row)) is not None:
            columns.append(first_row.index(column))
        else:
            raise InputError(
                f"{path}: no column is named {name!r}{hint_of_name(name, first_row)}; the first line has "
                f"{', '.join(map(repr, first_row[:20]))}. {SET_COLUMNS} to these "
                "names, or to column numbers from 1"
            )
    return columns, is_header


def names_columns(names: Sequence[str], first_row: Sequence[str]) -> bool:
    """Return True if the first row of a table contains at least one of the given names of columns.

    The usual names, which a recipe has by default, may differ in case only if there are several and all of them occur:
    the first row of a dictionary may contain "Source", and a table of reviews a column "Source" for their origin.
    """
    words = [name for name in names if not name.isdecimal()]
    if any(name in first_row for name in words):
        return True
    alike = [find_name(name, first_row) is not None for name in words]
    return len(words) > 1 and all(alike) if tuple(names) in USUAL_FIELDS else any(alike)


def json_problem(error: Exception) -> str:
    """Describe why one line is not JSON, without the line number that `json` adds, which is always 1."""
    return f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)


def parse_object(line: str, location: str) -> dict[str, object]:
    """Parse one line of a .jsonl file and return its JSON object. Error messages begin with `location`."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{location}: not JSON ({json_problem(error)}); each line must be one object") from error
    if not isinstance(values, dict):
        raise InputError(f"{location}: a JSON {JSON_KINDS[type(values)]}, not an object; each line must be one object")
    return values


def is_missing(value: object) -> bool:
    """Return True for null, and for NaN, which Python and pandas write for a missing value."""
    return value is None or (isinstance(value, float) and isnan(value))


def _text_of(values: dict[str, object], key: str, fields: Fields, first_keys: Sequence[str], location: str) -> bytes:
    """Return the text under a key as bytes: decoding them finds lone surrogates, which JSON allows but UTF-8 does not.

    `first_keys` are the keys of the file's first object. If it lacks the key too, the name is wrong; otherwise this
    line is malformed.
    """
    name = find_name(key, list(values))
    if name is None:
        keys = ", ".join(map(repr, list(values)[:20])) or "none"
        remedy = f"{SET_COLUMNS} to these keys"
        if find_name(key, first_keys) is not None:
            remedy = "Add the key, or remove the line"
        raise InputError(f"{location}: no key {key!r}{hint_of_name(key, list(values))}; it has {keys}. {remedy}")
    # pandas writes NaN for a missing text, which `json.loads` reads as a number.
    value = None if is_missing(values[name]) else values[name]
    if fields.turns and isinstance(value, list):
        value = context_of(value) or value
    if key == fields.label and isinstance(value, int | float | None):
        value = "" if value is None else json.dumps(value)
    if value is None:
        raise InputError(f"{location}: the value of {key!r} is null, not text; fill it in, or remove the line")
    if not isinstance(value, str):
        remedy = "choose another key" if isinstance(value, list | dict) else "put it in quotes"
        raise InputError(f"{location}: the value of {key!r} is a JSON {JSON_KINDS[type(value)]}, not text; {remedy}")
    return value.encode("utf-8", "surrogatepass")


READERS = {".tsv": rows_of_table, ".csv": rows_of_table, ".jsonl": rows_of_objects}
