"""Guesses what the columns of a table, or the keys of JSON objects, hold: text, labels, ids, numbers or others."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from heedful.config.schema import DataConfig
from heedful.data.readers.chat_messages import is_dialogue
from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes
from heedful.data.readers.header import (
    DECIMAL_COMMA,
    GROUPED,
    LABEL_ENDS,
    LABEL_NAMES,
    LANGUAGE_NAMES,
    PAIR_NAMES,
    TEXT_NAMES,
    is_header,
    is_number,
    whole_number,
)
from heedful.data.readers.rows import cells_of, is_missing, parse_object
from heedful.data.readers.separators import check_objects
from heedful.errors import InputError

MOST_VALUES = 20_000  # different values that are remembered of a column
LONGEST_VALUE = 256  # characters of a value that is remembered as it is
MOST_LABELS = 100
LABEL_CHARACTERS = 40  # on average
TEXT_CHARACTERS = 8  # on average, from which a column can be text whatever its name is
FEW_NUMBERS = 20  # different whole numbers that are classes, even if they do not count from 0 or 1
NOTE = re.compile(r"https?://|www\.|CC[ -]?BY|©|\(c\)")  # begins addresses and notes of a licence

Notation = Literal["point", "comma", "unclear"]


@dataclass
class Column:
    """Statistics of one column of a table, or of one key of JSON objects, under the name that a recipe uses for it."""

    name: str
    rows: int = 0
    characters: int = 0
    spaces: int = 0  # cells with a space inside, or with letters of a script without spaces
    all_numbers: bool = True
    lists: int = 0  # cells that are lists, in JSON
    dialogues: int = 0  # cells that are lists of turns or messages
    messages: int = 0  # cells that are lists of objects
    repeats: bool = False  # whether a value stands in the column more than once
    values: set[str] = field(default_factory=set)  # of long ones the hash
    notes: int = 0  # cells that are addresses, or notes of a licence
    has_fractions: bool = False  # whether a number is not whole
    decimal_commas: int = 0  # numbers such as 4,37, which a thousand separator cannot explain
    grouped: int = 0  # numbers such as 1,234,567, which a decimal comma cannot explain
    unclear: int = 0  # numbers such as 38,000

    def add(self, cell: str) -> None:
        """Add one cell of the column to its statistics; an empty one does not show what the others hold."""
        if not cell.strip():
            self.rows += 1
            return
        self.rows += 1
        self.characters += len(cell)
        self.spaces += " " in cell.strip() or (len(cell) > 3 and not cell.isascii())
        self.all_numbers = self.all_numbers and self._add_number(cell.strip())
        self.notes += NOTE.match(cell) is not None
        value = cell if len(cell) <= LONGEST_VALUE else f"#{blake2b(cell.encode(errors='surrogatepass')).hexdigest()}"
        self.repeats = self.repeats or value in self.values
        if len(self.values) < MOST_VALUES:
            self.values.add(value)

    def _add_number(self, cell: str) -> bool:
        """Note how a number is written, and whether it is whole; False for other cells."""
        if is_number(cell):
            self.has_fractions = self.has_fractions or not float(cell).is_integer()
            return True
        with_comma, in_groups = DECIMAL_COMMA.fullmatch(cell) is not None, GROUPED.fullmatch(cell) is not None
        self.decimal_commas += with_comma and not in_groups
        self.grouped += in_groups and not with_comma
        self.unclear += with_comma and in_groups
        self.has_fractions = self.has_fractions or (with_comma and not in_groups) or "." in cell
        return with_comma or in_groups

    @property
    def notation(self) -> Notation:
        """How numbers are written: with a decimal point (and groups of digits), or with a decimal comma, or unclear."""
        if self.decimal_commas:
            return "unclear" if self.grouped else "comma"
        return "unclear" if self.unclear and not self.grouped else "point"

    @property
    def is_score(self) -> bool:
        """True if the column seems to hold numbers to predict, not classes: fractions, or many different numbers."""
        if not self.all_numbers or self.is_id or len(self.values) < 2:
            return False
        if self.has_fractions:
            return len(self.values) > 2
        return not self.is_label or (len(self.values) > FEW_NUMBERS and not self.counts_up)

    @property
    def counts_up(self) -> bool:
        """True if the values are the whole numbers from 0 or 1 to the largest one, as numbered classes are."""
        if not self._are_whole:
            return False
        numbers = sorted({int(whole_number(cell.strip()) or cell) for cell in self.values})
        return numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1

    @property
    def is_note(self) -> bool:
        """True if the column seems to hold addresses or notes of a licence, which are no text to learn from."""
        return 0 < self.rows == self.notes

    @property
    def is_text(self) -> bool:
        """True if the column seems to hold text: different values, most of several words, or a name that says so."""
        if self.all_numbers or self.lists:
            return False
        named = self.name.strip().lower() in TEXT_NAMES | PAIR_NAMES | LANGUAGE_NAMES
        wordy = 2 * self.spaces > self.rows and self.characters >= TEXT_CHARACTERS * self.rows
        return (named or wordy) and not self.is_label

    @property
    def is_dialogue(self) -> bool:
        """True if the column seems to hold dialogues: all cells are lists, most of turns or messages."""
        return self.lists == self.rows and 2 * self.dialogues > self.rows

    @property
    def is_label(self) -> bool:
        """True if the column seems to hold labels of classes: few different values, short on average."""
        few = 2 <= len(self.values) <= max(2, min(MOST_LABELS, self.rows // 3))
        return few and not self.lists and self.characters <= LABEL_CHARACTERS * self.rows

    @property
    def is_id(self) -> bool:
        """True if the column seems to hold ids or row numbers: whole numbers that are called so, or no two equal."""
        is_called = re.split(r"[\W_]+", self.name.strip().lower())[-1] in ("id", "idx", "index")
        return not self.is_called_label and (is_called or not self.repeats) and self._are_whole

    @property
    def _are_whole(self) -> bool:
        """True if the values are whole numbers from 0, with or without the fraction .0."""
        values = (cell.strip() for cell in self.values)
        return all((whole_number(value) or value).isdecimal() for value in values)

    @property
    def is_called_label(self) -> bool:
        """True if the name of the column is a usual one for labels, such as "label" or "class"."""
        return self.name.strip().lower() in LABEL_NAMES

    @property
    def ends_like_label(self) -> bool:
        """True if the name of the column ends as those of labels do, such as "gold_label" or "relatedness_score"."""
        return re.split(r"[\W_]+", self.name.strip().lower())[-1] in LABEL_ENDS

    def __str__(self) -> str:
        kinds = {
            "dialogues": self.is_dialogue,
            "lists": self.lists,
            "text": self.is_text,
            "labels": self.is_label,
            "ids": self.is_id,
            "numbers": self.all_numbers,
        }
        kind = next((kind for kind, holds in kinds.items() if holds), "other values")
        count = f"{len(self.values):,}" + "+" * (len(self.values) == MOST_VALUES)
        return f"{self.name!r} ({kind}, {count} different)"


def columns_of(path: Path, data: DataConfig) -> list[Column]:
    """Read a table (.tsv, .csv) or a .jsonl file and return the statistics of each column or key.

    Without a header, the names of columns are their numbers, from 1, and so is that of a column whose name is empty.

    Raises:
        InputError: The file cannot be read, has no rows, or is a table where its name says JSON, or the reverse.
    """
    suffix = ending_of(path)
    policy: BadUtf8 = "replace" if data.bad_utf8 == "skip" else data.bad_utf8
    found = _of_objects(path, policy) if suffix == ".jsonl" else _of_table(path, policy)
    if not found or not found[0].rows:
        raise InputError(f"{path}: there are no rows in it; check the file")
    return found


def has_header(path: Path, bad_utf8: BadUtf8 = "error") -> bool:
    """True if the first row of a table file (.tsv, .csv) is a header, which names the columns.

    Raises:
        InputError: The file cannot be read, or holds JSON objects.
    """
    first = next(_rows(path, bad_utf8), [])
    others = (row[: len(first)] for row in _rows(path, bad_utf8) if len(row) >= len(first))
    next(others, None)
    return is_header(first, others)


def _rows(path: Path, policy: BadUtf8) -> Iterator[Sequence[str]]:
    return (cells for _, cells in cells_of(path, policy) if cells is not None)


def _of_table(path: Path, policy: BadUtf8) -> list[Column]:
    first = next(_rows(path, policy), [])
    has_names = has_header(path, policy)
    columns = [Column(name if has_names and name.strip() else str(n)) for n, name in enumerate(first, start=1)]
    for number, row in enumerate(_rows(path, policy)):
        if number or not has_names:
            for column, cell in zip(columns, row, strict=False):
                column.add(cell)
    return columns


def _of_objects(path: Path, policy: BadUtf8) -> list[Column]:
    check_objects(path, policy)
    columns: dict[str, Column] = {}
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=policy), start=1):
            for key, value in parse_object(line or "", f"{path}, line {number}").items():
                column = columns.setdefault(key, Column(key))
                column.lists += isinstance(value, list)
                column.dialogues += is_dialogue(value)
                column.messages += isinstance(value, list) and any(isinstance(item, dict) for item in value)
                column.add(value if isinstance(value, str) else "" if is_missing(value) else json.dumps(value))
    return list(columns.values())
