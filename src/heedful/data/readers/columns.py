"""Columns of a table and keys of JSON objects: whether there is a header, and what each column holds."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from heedful.config.schema import DataConfig
from heedful.data.readers.chat_messages import is_dialogue
from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes
from heedful.data.readers.rows import cells_of, check_objects, is_missing, parse_object
from heedful.errors import InputError


def _named(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Usual names of columns, in lower case. A row of such names, all of them different, is hardly ever data.
TEXT_NAMES = _named(
    "source src text texts sentence sentence1 sentence_1 text_a document article review reviews comment content body"
    " message tweet question query premise input prompt instruction title headline caption transcript transcription"
    " 文本 句子 评论 内容 正文 标题 问题 原文 说明 文字稿"
)
PAIR_NAMES = _named(
    "pair target tgt translation sentence2 sentence_2 text_b hypothesis answer response reply summary passage context"
    " output completion highlights 译文 回答 答案 摘要"
)
LABEL_NAMES = _named(
    "label labels class category sentiment polarity stars rating score target y tag topic quality intent emotion"
    " 标签 类别 情感 评分 分类"
)
LABEL_ENDS = _named("label labels class category sentiment polarity stars rating score judgment emotion duplicate")
FILE_NAMES = _named(
    "file files filename file_name path image image_path picture photo audio audio_path sound wav clip recording"
    " 文件 图片 图画 照片 音频 声音 录音"
)
LANGUAGE_NAMES = _named(
    "en de fr es it pt nl pl ru uk cs tr ar he zh ja ko vi th hi english german french spanish italian portuguese"
    " dutch polish russian ukrainian czech turkish arabic hebrew chinese japanese korean"
)
OTHER_NAMES = _named("id index idx key date split")
NAMES = TEXT_NAMES | PAIR_NAMES | LABEL_NAMES | LANGUAGE_NAMES | FILE_NAMES | OTHER_NAMES

MAX_NAME = 40  # characters
NAME = re.compile(r"(#|[^\W\d])[\w#./()-]*( [\w#./()-]+){0,2}")  # "label", "text_a", "#1 String"; no sentence or number
WHOLE_NUMBER = re.compile(r"(0|-?[1-9][0-9]*)([.]0+)?")  # tables write 2.0 where a value of the column is missing
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")  # 4,37 or 1.234,5
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")  # 38,000 or 1,234.5
MIN_ROWS = 10  # rows that show which labels there are
MAX_LABELS = 1000  # different values in a column of labels


def is_header(first: Sequence[str], others: Iterable[Sequence[str | None]]) -> bool:
    """True if the first row of a table is a header, which names the columns.

    Each of its cells must look like a name; the first may be empty, above row numbers that a program has added. Then
    all names must be well-known names of columns; or none may come again below, and a column below must hold nothing
    but numbers, or a few labels, each of them more than once. `others` are the same cells of the rows below, None where
    bad UTF-8 is to be skipped; they are read only where names are not well known.
    """
    cells = [cell.strip() for cell in first]
    names = cells[1:] if cells[:1] == [""] else cells
    if not names or len(set(names)) < len(names):
        return False
    if any(len(name) > MAX_NAME or NAME.fullmatch(name) is None for name in names):
        return False
    if all(name.lower() in NAMES for name in names):
        return True
    columns = [_Column(cell) for cell in cells]
    for row in others:
        for column, cell in zip(columns, row, strict=True):
            column.add((cell or "").strip())
        if any(column.comes_again for column in columns) or not any(c.all_numbers or c.few for c in columns):
            return False
    return any(column.is_named for column in columns)


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def whole_number(text: str) -> str | None:
    """Write a whole number without a fraction, so that 2.0 is 2; None for other texts, and for codes such as 007."""
    match = WHOLE_NUMBER.fullmatch(text)
    return None if match is None else match[1]


class _Column:
    """The values of a column below its first cell, as long as they may show if the cell is its name."""

    def __init__(self, first: str) -> None:
        self.first = first
        self.rows = 0
        self.comes_again = False  # True if the first cell is among the values, as of data and not of names
        self.all_numbers = True
        self.few = True  # whether there are so few different values that they may be labels
        self.counts: dict[str, int] = {}

    def add(self, value: str) -> None:
        self.rows += 1
        self.comes_again = value == self.first
        self.all_numbers = self.all_numbers and (
            is_number(value) or any(notation.fullmatch(value) for notation in (DECIMAL_COMMA, GROUPED))
        )
        if self.few:
            self.counts[value] = self.counts.get(value, 0) + 1
            self.few = len(self.counts) <= MAX_LABELS

    @property
    def is_named(self) -> bool:
        """True if the first cell is the name of the column: the values are numbers, or labels that come again."""
        # Each label more than once, and enough rows to see that.
        are_labels = self.few and self.rows >= MIN_ROWS and min(self.counts.values()) > 1
        return self.rows > 0 and (self.all_numbers or are_labels)


MAX_VALUES = 20_000  # different values that are remembered of a column
MAX_VALUE = 256  # characters of a value that is remembered as it is
MAX_DISTINCT_LABELS = 100
LABEL_CHARACTERS = 40  # on average
TEXT_CHARACTERS = 8  # on average, from which a column can be text whatever its name is
MAX_CLASS_NUMBERS = 20  # different whole numbers that are classes, even if they do not count from 0 or 1
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
    repeats: bool = False  # whether a value is in the column more than once
    values: set[str] = field(default_factory=set)  # of long ones the hash
    notes: int = 0  # cells that are addresses, or notes of a licence
    has_fractions: bool = False  # whether a number is not whole
    decimal_commas: int = 0  # numbers such as 4,37, which a thousand separator cannot explain
    grouped: int = 0  # numbers such as 1,234,567, which a decimal comma cannot explain
    unclear: int = 0  # numbers such as 38,000

    def add(self, cell: str) -> None:
        """Add one cell of the column to its statistics; an empty one does not show what the others hold."""
        self.rows += 1
        if not cell.strip():
            return
        self.characters += len(cell)
        self.spaces += " " in cell.strip() or (len(cell) > 3 and not cell.isascii())
        self.all_numbers = self.all_numbers and self._add_number(cell.strip())
        self.notes += NOTE.match(cell) is not None
        value = cell if len(cell) <= MAX_VALUE else f"#{blake2b(cell.encode(errors='surrogatepass')).hexdigest()}"
        self.repeats = self.repeats or value in self.values
        if len(self.values) < MAX_VALUES:
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
        if not self.is_label:
            return True
        # numbered classes are the whole numbers from 0 or 1 to the largest one
        counts_up = False
        if self._are_whole:
            numbers = sorted({int(whole_number(cell.strip()) or cell) for cell in self.values})
            counts_up = numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1
        return len(self.values) > MAX_CLASS_NUMBERS and not counts_up

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
        few = 2 <= len(self.values) <= max(2, min(MAX_DISTINCT_LABELS, self.rows // 3))
        return few and not self.lists and self.characters <= LABEL_CHARACTERS * self.rows

    @property
    def is_id(self) -> bool:
        """True if the column seems to hold ids or row numbers: whole numbers that are called so, or no two equal."""
        is_called = re.split(r"[\W_]+", self.name.strip().lower())[-1] in ("id", "idx", "index")
        return not self.is_called_label and (is_called or not self.repeats) and self._are_whole

    @property
    def _are_whole(self) -> bool:
        values = (cell.strip() for cell in self.values)
        return all((whole_number(value) or value).isdecimal() for value in values)

    @property
    def is_called_label(self) -> bool:
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
        count = f"{len(self.values):,}" + "+" * (len(self.values) == MAX_VALUES)
        return f"{self.name!r} ({kind}, {count} different)"


def columns_of(path: Path, data: DataConfig) -> list[Column]:
    """Read a table (.tsv, .csv) or a .jsonl file and return the statistics of each column or key.

    Without a header, the names of columns are their numbers, from 1, and so is that of a column whose name is empty.
    """
    suffix = ending_of(path)
    policy: BadUtf8 = "replace" if data.bad_utf8 == "skip" else data.bad_utf8
    columns = _of_objects(path, policy) if suffix == ".jsonl" else _of_table(path, policy)
    if not columns or not columns[0].rows:
        raise InputError(f"{path}: there are no rows in it; check the file")
    return columns


def has_header(path: Path, bad_utf8: BadUtf8 = "error") -> bool:
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
