"""Header detection: tells if the first row of a table is a header, with names of columns instead of data."""

import math
import re
from collections.abc import Iterable, Sequence


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

LONGEST_NAME = 40  # characters
NAME = re.compile(
    r"(#|[^\W\d])[\w#./()-]*( [\w#./()-]+){0,2}"
)  # "label", "text_a", "#1 String": no sentence, no number
WHOLE_NUMBER = re.compile(r"(0|-?[1-9][0-9]*)([.]0+)?")  # tables write 2.0 where a value of the column is missing
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")  # 4,37 or 1.234,5
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")  # 38,000 or 1,234.5
ENOUGH = 10  # rows that show which labels there are
MOST_VALUES = 1000  # different values in a column of labels


def is_header(first: Sequence[str], others: Iterable[Sequence[str | None]]) -> bool:
    """True if the first row of a table is a header, which names the columns.

    Each of its cells must look like a name; the first may be empty, above row numbers that a program has added. Then
    all names must be well-known names of columns; or none may come again below, and a column below must hold nothing
    but numbers, or a few labels, each of them more than once.

    Args:
        first: The cells of the first row.
        others: The same cells of the rows below, None where bad UTF-8 is to be skipped; read only where names are not
            well known.
    """
    cells = [cell.strip() for cell in first]
    names = cells[1:] if cells[:1] == [""] else cells
    if not names or len(set(names)) < len(names) or not all(map(_is_name, names)):
        return False
    if all(name.lower() in NAMES for name in names):
        return True
    columns = [_Column(cell) for cell in cells]
    for row in others:
        for column, cell in zip(columns, row, strict=True):
            column.add((cell or "").strip())
        if any(column.comes_again for column in columns) or not any(column.may_be_named for column in columns):
            return False
    return any(column.is_named for column in columns)


def _is_name(cell: str) -> bool:
    return len(cell) <= LONGEST_NAME and NAME.fullmatch(cell) is not None


def is_number(text: str) -> bool:
    """True if a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def whole_number(text: str) -> str | None:
    """Write a whole number without a fraction, so that 2.0 is 2; None for other texts, and for codes such as 007."""
    match = WHOLE_NUMBER.fullmatch(text)
    return None if match is None else match[1]


def may_be_number(text: str) -> bool:
    """True if a text is a finite number, or would be one in a notation with commas: 4,37 or 38,000."""
    return is_number(text) or any(notation.fullmatch(text) for notation in (DECIMAL_COMMA, GROUPED))


class _Column:
    """The values of a column below its first cell, as long as they may tell if the cell is its name."""

    def __init__(self, first: str) -> None:
        self.first = first
        self.rows = 0
        self.comes_again = False  # True if the first cell stands again below, as data do and names do not
        self.all_numbers = True
        self.counts: dict[str, int] = {}

    def add(self, value: str) -> None:
        """Add one value below the first cell of the column."""
        self.rows += 1
        self.comes_again = value == self.first
        self.all_numbers = self.all_numbers and may_be_number(value)
        if self.few:
            self.counts[value] = self.counts.get(value, 0) + 1

    @property
    def few(self) -> bool:
        """True if the column has so few different values that they may be labels."""
        return len(self.counts) <= MOST_VALUES

    @property
    def may_be_named(self) -> bool:
        """True if the first cell of the column may still be its name, by the values so far."""
        return self.all_numbers or self.few

    @property
    def is_named(self) -> bool:
        """True if the first cell is the name of the column: the values below are numbers, or labels that come again."""
        are_labels = self.few and self.rows >= ENOUGH and min(self.counts.values()) > 1
        return self.rows > 0 and (self.all_numbers or are_labels)
