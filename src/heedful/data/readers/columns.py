"""Columns of a table or keys of JSON objects: whether a table has a header, and what each column contains."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import eq
from pathlib import Path
from typing import Literal

from heedful.config.schema import DataConfig
from heedful.data.readers.chat_messages import is_dialogue
from heedful.data.readers.files import BadUtf8, ending_of
from heedful.data.readers.rows import cells_of, check_objects, is_missing, objects_of
from heedful.errors import InputError


def _named(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Usual column names, in lower case. A row of such names, all of them distinct, is hardly ever data.
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
# "label", "text_a" and "#1 String" look like names; sentences and numbers do not.
NAME = re.compile(r"(#|[^\W\d])[\w#./()-]*( [\w#./()-]+){0,2}")
WHOLE_NUMBER = re.compile(r"(0|-?[1-9][0-9]*)([.]0+)?")  # pandas writes 2.0 if a value in the column is missing
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")  # 4,37 or 1.234,5
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")  # 38,000 or 1,234.5
MIN_ROWS = 10  # with fewer rows, repeated values do not show that a column contains labels
MAX_LABELS = 1000  # distinct values in a label column; more suggest ids or text


def is_header(first: Sequence[str], others: Iterable[Sequence[str | None]]) -> bool:
    """Return True if the first row of a table is a header with the column names.

    Its cells must be distinct and look like names; only the first may be empty, above row numbers that a program added.
    If all are well-known column names, the row is a header. Otherwise, no name may occur again in its column, and at
    least one column must contain only numbers, or only a few labels that each occur more than once. `others` are the
    cells of the other rows, with None where bad UTF-8 was skipped; they are read only if some names are not well known.
    """
    cells = [cell.strip() for cell in first]
    names = cells[1:] if cells[:1] == [""] else cells
    if not names or len(set(names)) < len(names):
        return False
    if any(len(name) > MAX_NAME or NAME.fullmatch(name) is None for name in names):
        return False
    if all(name.lower() in NAMES for name in names):
        return True
    columns = [_ValueCounts() for _ in cells]
    for row in others:
        values = [(value or "").strip() for value in row]
        for column, value in zip(columns, values, strict=True):
            column.add(value)
        # Stop reading a long table as soon as a name occurs as a value, or no column can confirm the header any more.
        if any(map(eq, cells, values)) or not any(column.all_numbers or column.few for column in columns):
            return False
    return any(column.is_numeric_or_label for column in columns)


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def whole_number(text: str) -> str | None:
    """Return a whole number without ".0", or None for other texts and for codes such as 007."""
    match = WHOLE_NUMBER.fullmatch(text)
    return None if match is None else match[1]


class _ValueCounts:
    """Counts of a column's values, until there are too many to be labels, and whether all values are numbers."""

    def __init__(self) -> None:
        self.rows = 0
        self.all_numbers = True
        self.few = True  # True while there are so few distinct values that they may be labels
        self.counts: dict[str, int] = {}

    def add(self, value: str) -> None:
        self.rows += 1
        self.all_numbers = self.all_numbers and (
            is_number(value) or any(notation.fullmatch(value) for notation in (DECIMAL_COMMA, GROUPED))
        )
        if self.few:
            self.counts[value] = self.counts.get(value, 0) + 1
            self.few = len(self.counts) <= MAX_LABELS

    @property
    def is_numeric_or_label(self) -> bool:
        is_label = self.few and self.rows >= MIN_ROWS and min(self.counts.values()) > 1
        return self.rows > 0 and (self.all_numbers or is_label)


MAX_VALUES = 20_000  # number of distinct values of a column that are stored
MAX_VALUE = 256  # number of characters of a stored value; longer values are hashed
MAX_DISTINCT_LABELS = 100
LABEL_CHARACTERS = 40  # maximum mean length of labels
TEXT_CHARACTERS = 8  # minimum mean length of the cells of a text column, unless its name is well known
MAX_CLASS_NUMBERS = 20  # up to this many distinct whole numbers may be classes even if they have gaps
NOTE = re.compile(r"https?://|www\.|CC[ -]?BY|©|\(c\)")  # how URLs and licence notes begin

Notation = Literal["point", "comma", "unclear"]


@dataclass
class Column:
    """Statistics of one column of a table, or of one key of JSON objects, with the name that a recipe uses for it."""

    name: str
    rows: int = 0
    characters: int = 0
    spaces: int = 0  # cells with a space inside, or of 4 or more characters, not all ASCII; some scripts have no spaces
    all_numbers: bool = True
    lists: int = 0  # cells that are lists, in JSON
    dialogues: int = 0  # cells that are lists of turns or messages
    messages: int = 0  # cells that are lists with at least one object
    repeats: bool = False  # True if a value occurs more than once
    values: set[str] = field(default_factory=set)  # distinct values, or their hashes
    notes: int = 0  # cells that are URLs or licence notes
    has_fractions: bool = False  # True if a number is not whole
    decimal_commas: int = 0  # numbers such as 4,37, which a thousands separator cannot explain
    grouped: int = 0  # numbers such as 1,234,567, which a decimal comma cannot explain
    unclear: int = 0  # numbers such as 38,000, which both can explain

    def add(self, cell: str) -> None:
        """Add one cell of the column to its statistics. An empty cell only counts as a row."""
        self.rows += 1
        if not cell.strip():
            return
        self.characters += len(cell)
        self.spaces += " " in cell.strip() or (len(cell) > 3 and not cell.isascii())
        self.all_numbers = self.all_numbers and self._add_number(cell.strip())
        self.notes += NOTE.match(cell) is not None
        # Values are only compared, so a hash is enough; thousands of long documents would not fit into memory.
        value = cell if len(cell) <= MAX_VALUE else f"#{blake2b(cell.encode(errors='surrogatepass')).hexdigest()}"
        self.repeats = self.repeats or value in self.values
        if len(self.values) < MAX_VALUES:
            self.values.add(value)

    def _add_number(self, cell: str) -> bool:
        """Record the notation of a number, and whether it is whole; return False if the cell is not a number."""
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
        """Notation of the numbers: a decimal point (perhaps with groups of digits), a decimal comma, or unclear."""
        if self.decimal_commas:
            return "unclear" if self.grouped else "comma"
        return "unclear" if self.unclear and not self.grouped else "point"

    @property
    def is_score(self) -> bool:
        """True if the column seems to contain numbers to predict, not classes: fractions, or many distinct numbers."""
        if not self.all_numbers or self.is_id or len(self.values) < 2:
            return False
        if self.has_fractions:
            return len(self.values) > 2
        if not self.is_label:
            return True
        # Numbered classes use every whole number from 0 or 1 to the largest one.
        counts_up = False
        if self._has_whole_numbers:
            numbers = sorted({int(whole_number(cell.strip()) or cell) for cell in self.values})
            counts_up = numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1
        return len(self.values) > MAX_CLASS_NUMBERS and not counts_up

    @property
    def is_note(self) -> bool:
        """True if the column seems to contain URLs or licence notes, which are not text to learn from."""
        return 0 < self.rows == self.notes

    @property
    def is_text(self) -> bool:
        """True if the column seems to be text, not labels: most cells have several words, or its name is well known."""
        if self.all_numbers or self.lists:
            return False
        is_known_name = self.name.strip().lower() in TEXT_NAMES | PAIR_NAMES | LANGUAGE_NAMES
        has_phrases = 2 * self.spaces > self.rows and self.characters >= TEXT_CHARACTERS * self.rows
        return (is_known_name or has_phrases) and not self.is_label

    @property
    def is_dialogue(self) -> bool:
        """True if the column seems to contain dialogues: all cells are lists, mostly of turns or messages."""
        return self.lists == self.rows and 2 * self.dialogues > self.rows

    @property
    def is_label(self) -> bool:
        """True if the column seems to contain class labels: few distinct values, short on average."""
        # Labels occur at least three times each on average; other short values, such as names, rarely do.
        few = 2 <= len(self.values) <= max(2, min(MAX_DISTINCT_LABELS, self.rows // 3))
        return few and not self.lists and self.characters <= LABEL_CHARACTERS * self.rows

    @property
    def is_id(self) -> bool:
        """True if the column seems to be ids or row numbers: whole numbers, all distinct or under a name like "id"."""
        is_named = self._last_word in ("id", "idx", "index")
        return not self.is_called_label and (is_named or not self.repeats) and self._has_whole_numbers

    @property
    def _has_whole_numbers(self) -> bool:
        values = (cell.strip() for cell in self.values)
        return all((whole_number(value) or value).isdecimal() for value in values)

    @property
    def is_called_label(self) -> bool:
        return self.name.strip().lower() in LABEL_NAMES

    @property
    def ends_like_label(self) -> bool:
        """True if the column name ends in a word for labels, as "gold_label" and "relatedness_score" do."""
        return self._last_word in LABEL_ENDS

    @property
    def _last_word(self) -> str:
        return re.split(r"[\W_]+", self.name.strip().lower())[-1]

    def __str__(self) -> str:
        kinds = {
            "dialogues": self.is_dialogue,
            "lists": self.lists,
            "text": self.is_text,
            "labels": self.is_label,
            "ids": self.is_id,
            "numbers": self.all_numbers,
        }
        kind = next((kind for kind, holds in kinds.items() if holds), "values")
        count = f"{len(self.values):,}" + "+" * (len(self.values) == MAX_VALUES)
        return f"{self.name!r} ({kind}, {count} distinct)"


def columns_of(path: Path, data: DataConfig) -> list[Column]:
    """Read a table (.tsv, .csv) or a .jsonl file and return the statistics of each column or key.

    Without a header, or with an empty name, a column is named by its number, from 1.
    """
    # A line of a CSV file cannot be skipped, because its row may span lines; for statistics, U+FFFD is just as good.
    policy: BadUtf8 = "replace" if data.bad_utf8 == "skip" else data.bad_utf8
    columns = _columns_of_objects(path, policy) if ending_of(path) == ".jsonl" else _columns_of_table(path, policy)
    if not columns or not columns[0].rows:
        raise InputError(f"{path}: has no rows; check the file")
    return columns


def has_header(path: Path, bad_utf8: BadUtf8 = "error") -> bool:
    first = next(_rows(path, bad_utf8), [])
    # `is_header` compares cell by cell. Malformed rows, which are too short, are reported when the data is read.
    others = (row[: len(first)] for row in _rows(path, bad_utf8) if len(row) >= len(first))
    next(others, None)
    return is_header(first, others)


def _rows(path: Path, bad_utf8: BadUtf8) -> Iterator[Sequence[str]]:
    return (cells for _, cells in cells_of(path, bad_utf8) if cells is not None)


def _columns_of_table(path: Path, bad_utf8: BadUtf8) -> list[Column]:
    first = next(_rows(path, bad_utf8), [])
    has_names = has_header(path, bad_utf8)
    columns = [Column(name if has_names and name.strip() else str(n)) for n, name in enumerate(first, start=1)]
    for number, row in enumerate(_rows(path, bad_utf8)):
        if number or not has_names:
            for column, cell in zip(columns, row, strict=False):
                column.add(cell)
    return columns


def _columns_of_objects(path: Path, bad_utf8: BadUtf8) -> list[Column]:
    check_objects(path, bad_utf8)
    columns: dict[str, Column] = {}
    for _, values in objects_of(path, bad_utf8):
        for key, value in (values or {}).items():
            column = columns.setdefault(key, Column(key))
            # Counted here, because `add` receives lists as JSON text.
            column.lists += isinstance(value, list)
            column.dialogues += is_dialogue(value)
            column.messages += isinstance(value, list) and any(isinstance(item, dict) for item in value)
            column.add(value if isinstance(value, str) else "" if is_missing(value) else json.dumps(value))
    return list(columns.values())
