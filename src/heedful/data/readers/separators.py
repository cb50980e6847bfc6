"""Separator check: finds tables and lists of JSON objects whose contents do not fit their ending, such as .csv."""

import csv
import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes
from heedful.errors import InputError

LOOKED_AT = 1000  # lines
SEPARATORS = {"tabs": "\t", "commas": ",", "semicolons": ";"}
NAMED = {".tsv": "tabs", ".csv": "commas"}
OBJECTS = "a JSON object a line"
REMEDIES = {
    "tabs": "give it a name that ends in .tsv or, if texts stand in quotes, save it with commas",
    "commas": "give it a name that ends in .csv or, if it has one text a line and no columns, in .txt",
    "semicolons": "save it with commas, under a name that ends in .csv",
}


def check_separators(path: Path, bad_utf8: BadUtf8) -> None:
    """Refuse a table whose first lines show that other characters separate its columns than its name says.

    Other separators are found if they cut each line into the same number of cells, two or more, and those of the name
    do not. A name may also stand for JSON objects where the file is a table, or the other way round.

    Raises:
        InputError: The contents do not fit the name, or the file cannot be read.
    """
    suffix = ending_of(path)
    with open_bytes(path) as stream:
        lines = [line for line in islice(decode_lines(stream, str(path), bad_utf8=bad_utf8), LOOKED_AT) if line]
    named = NAMED.get(suffix, OBJECTS)
    first = lines[0] if lines else ""
    if named == OBJECTS and first.lstrip().startswith(("{", "[")):
        return  # if it is broken, the reader says how
    if named != OBJECTS and _holds_object(first):
        raise InputError(
            f"{path}: it seems to hold {OBJECTS}, where a {suffix} file has {named} between its columns; give it a "
            "name that ends in .jsonl"
        )
    widths = {separator: width(lines, separator) for separator in SEPARATORS}
    if widths.get(named, 1) > 1:
        return
    for separator, columns in widths.items():
        if columns > 1:
            raise InputError(
                f"{path}: it seems to have {columns} columns with {separator} between them, where a {suffix} file has "
                f"{named}; {REMEDIES[separator]}"
            )


def _holds_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def width(lines: Iterable[str], separator: str) -> int:
    """Return the number of cells in each table row; 1 where rows differ. The last one may be cut off and is ignored.

    Args:
        lines: The lines of the table.
        separator: A key of `SEPARATORS`, such as "tabs".
    """
    quoting = csv.QUOTE_NONE if separator == "tabs" else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader((f"{line}\n" for line in lines), delimiter=SEPARATORS[separator], quoting=quoting))
    except csv.Error:
        return 1
    widths = {len(row) for row in rows[:-1] or rows}
    return widths.pop() if len(widths) == 1 else 1
