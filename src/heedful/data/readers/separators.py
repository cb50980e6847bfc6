"""Separators of tables: what the name of a file says, such as .csv, or else what its first lines show."""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes
from heedful.errors import InputError

LOOKED_AT = 1000  # lines
SEPARATORS = {"tabs": "\t", "commas": ",", "semicolons": ";"}
CHARACTERS = {**SEPARATORS, "pipes": "|"}
NAMED = {".tsv": "tabs", ".csv": "commas"}
OBJECTS = "a JSON object a line"
AGREEING = 0.9  # the share of the rows that are as wide as the first one, where that many columns are meant
DECLARED = re.compile(r'"?sep=([\t,;|])"?', re.IGNORECASE)  # the first line of a table from Excel may say so
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
REMEDIES = {
    "tabs": "give it a name that ends in .tsv",
    "commas": "give it a name that ends in .csv or, if it has one text a line and no columns, in .txt",
    "semicolons": "give it a name that ends in .csv",
    "pipes": "give it a name that ends in .csv",
}


def separator_of(path: Path, bad_utf8: BadUtf8) -> str:
    """Return what separates the columns of a table, a key of `CHARACTERS`.

    It is what the ending of the name says or, where that does not cut the first lines into columns, what does: many
    programs write semicolons or tabs into .csv files. A .txt file has tabs.

    Raises:
        InputError: The file holds JSON objects, or cannot be read.
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
    if declared := declared_separator(lines):
        return declared
    return seen_separator(lines, named)


def check_objects(path: Path, bad_utf8: BadUtf8) -> None:
    """Refuse a file of JSON objects by its name that is a table by its contents.

    Raises:
        InputError: It is a table, or cannot be read.
    """
    lines = first_lines(path, bad_utf8)
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return  # if it is broken, the reader says how
    for separator in CHARACTERS:
        if (columns := width(lines, separator)) > 1:
            raise InputError(
                f"{path}: it seems to have {columns} columns with {separator} between them, where a "
                f"{ending_of(path)} file has {OBJECTS}; {REMEDIES[separator]}"
            )


def first_lines(path: Path, bad_utf8: BadUtf8) -> list[str]:
    """Return the first lines of a file that are not blank.

    Raises:
        InputError: The file cannot be read.
    """
    with open_bytes(path) as stream:
        return [line for line in islice(decode_lines(stream, str(path), bad_utf8=bad_utf8), LOOKED_AT) if line]


def declared_separator(lines: Sequence[str]) -> str | None:
    """Return the separator that the first line of a table declares, as in `sep=;`; None if it declares none."""
    match = DECLARED.fullmatch(lines[0].strip(" ")) if lines else None
    return next(name for name, character in CHARACTERS.items() if character == match[1]) if match else None


def seen_separator(lines: Sequence[str], named: str) -> str:
    """Return the separator that cuts lines into columns: the named one if it does, otherwise another one that does."""
    tried = dict.fromkeys((named, *CHARACTERS)) if len(lines) > 1 else [named]  # one line alone shows too little
    cutting = [separator for separator in tried if width(lines, separator) > 1]
    if len(cutting) > 1 and "commas" in cutting and _are_decimal(lines):
        cutting.remove("commas")
    return cutting[0] if cutting else named


def _are_decimal(lines: Sequence[str]) -> bool:
    """True if all commas in the lines of a table stand inside numbers, as in 4,37."""
    return not any("," in DECIMAL_COMMA.sub("", line) for line in lines)


def _holds_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def width(lines: Iterable[str], separator: str) -> int:
    """Return the number of cells in the first row of a table; 1 where other rows differ, but for a few broken ones.

    The last row may be cut off and is ignored.

    Args:
        lines: The lines of the table.
        separator: A key of `CHARACTERS`, such as "tabs".
    """
    quoting = csv.QUOTE_NONE if separator == "tabs" else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader((f"{line}\n" for line in lines), delimiter=CHARACTERS[separator], quoting=quoting))
    except csv.Error:
        return 1
    widths = [len(row) for row in rows[:-1] or rows]
    return widths[0] if widths and widths.count(widths[0]) >= AGREEING * len(widths) else 1
