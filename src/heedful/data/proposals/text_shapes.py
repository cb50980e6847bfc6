"""Shapes in which data sets come: JSON, CoNLL, fastText, TREC, tables whose name lies; recognised by their contents.

A language model of such a file learns brackets and labels, so the first lines of a file decide, not its name.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes
from heedful.data.readers.header import is_number
from heedful.data.readers.separators import CHARACTERS, width
from heedful.data.readers.squad import LONGEST_FILE
from heedful.data.readers.tagged import TREEBANK

LOOKED_AT = 500  # lines
FEWEST_LINES = 3  # fewer do not show a shape
SHARE = 0.95  # of the lines that have the shape
MOST_LABELS = 60  # of a file with a label at the beginning of each line
LONGEST_SENTENCE = 100  # words, on average
MOST_FIRST_WORDS, ENOUGH = 6, 20  # so few different words before so many lines may be labels
FEWEST_NUMBERS = 10  # of a word vector

JSON = re.compile(r"\s*(\[\s*[\[{\"]|\{\s*\")")
TAG = re.compile(r"O|[BIESLU]-\S+")
PART_OF_SPEECH = re.compile(r"[A-Z$.,:`'#()-]{1,8}")
FASTTEXT = re.compile(r"__label__\S+(,?\s+__label__\S+)*\s+\S")
TREC = re.compile(r"([A-Z]{2,}(?::\w+)?) \S*[a-z]")
ANALOGY = re.compile(r"\S+( \S+){3}")
WORDS = re.compile(r"\S+\t\S+\t[\d.]+")
QUOTED = re.compile(r'"([^"]|"")*"')

Kind = Literal[
    "tagged",
    "parts of speech",
    "questions",
    "fasttext",
    "labels",
    "first words",
    "objects",
    "json",
    "tabs",
    "commas",
    "semicolons",
    "foreign",
]


class TextShape(NamedTuple):
    """Shape of a data set: its kind, what it holds, and what to do with it if it is not for any task by itself."""

    kind: Kind
    content: str
    remedy: str = ""


def shape_of(path: Path, bad_utf8: BadUtf8) -> TextShape | None:
    """Recognise a data set in a file by its first lines; None for running text, and for a table that is as it says.

    Raises:
        InputError: The file cannot be read, or is not text.
    """
    with open_bytes(path) as stream:
        decoded = decode_lines(stream, str(path), bad_utf8=bad_utf8, longest=LONGEST_FILE)
        first = [line for line in islice(decoded, LOOKED_AT) if line is not None]
    lines = [line for line in first if line.strip()]
    if lines and JSON.match("\n".join(lines[:2])):
        return shape_of_json(lines, path)
    content = [line for line in lines if not line.startswith(("# ", "-DOCSTART-"))]
    if len(content) < FEWEST_LINES:
        return None
    if shape := shape_of_words(first, content):
        return shape
    if ending_of(path) not in NAMED:
        return shape_of_lines(content)
    has_comments = lines[0] != content[0]  # which a table does not have
    return shape_of_table(content, path) or (shape_of_word_lists(content) if has_comments else None)


NAMED = {".tsv": "tabs", ".csv": "commas", ".jsonl": "objects"}


def shape_of_words(lines: Sequence[str], content: Sequence[str]) -> TextShape | None:
    """Recognise a word with its tag in each line: of spans, or of single words such as parts of speech."""
    rows = [line.split("\t") if "\t" in line else line.split() for line in content]
    if share(len(cells) > 1 and bool(TAG.fullmatch(cells[-1].strip())) for cells in rows) >= SHARE:
        return TextShape("tagged", "words with tags (CoNLL)")
    blank = sum(not line.strip() for line in lines)
    widths = {len(row) for row in rows}
    if not blank or len(content) > LONGEST_SENTENCE * blank or len(widths) > 1 or widths == {1}:
        return None
    if widths == {TREEBANK} and share(row[0].replace("-", "").replace(".", "").isdecimal() for row in rows) >= SHARE:
        return TextShape("tagged", "words with their parts of speech (CoNLL-U)")
    if share(bool(PART_OF_SPEECH.fullmatch(row[-1])) for row in rows) >= SHARE:
        return TextShape("parts of speech", "words with tags of single words, such as parts of speech")
    return None


def shape_of_lines(lines: Sequence[str]) -> TextShape | None:
    """Recognise labelled texts, vectors and columns; None for running text."""
    if share(bool(FASTTEXT.match(line)) for line in lines) >= SHARE:
        several = any(line.count("__label__") > 1 for line in lines)
        return TextShape("fasttext", "fastText labels and texts" + ", of several labels the first" * several)
    labels = [match[1] for line in lines if (match := TREC.match(line))]
    if len(labels) >= SHARE * len(lines) and 1 < len(set(labels)) <= min(MOST_LABELS, len(lines) // 2):
        return TextShape("labels", "a label before each text")
    if words := first_words(lines):
        return TextShape("first words", f"lines that begin with {', '.join(words)}, which may be labels")
    return shape_of_word_lists(lines) or shape_of_columns(lines)


def first_words(lines: Sequence[str]) -> list[str]:
    """The words that begin the lines, if they are so few that they may be labels, and hardly occur elsewhere."""
    rows = [line.split() for line in lines]
    words = {row[0] for row in rows}
    elsewhere = share(not words.isdisjoint(row[1:]) for row in rows)
    are_few = 1 < len(words) <= MOST_FIRST_WORDS and len(lines) >= ENOUGH and elsewhere <= 1 - SHARE
    is_talk = any(word.endswith((":", ".")) for word in words) or any("\t" in line for line in lines)
    return sorted(words) if are_few and not is_talk else []


def shape_of_word_lists(lines: Sequence[str]) -> TextShape | None:
    """Recognise what word vectors are kept in, and what they are scored with; None for other lines."""
    vectors = [
        len(cells) for cells in map(str.split, lines) if len(cells) > FEWEST_NUMBERS and all(map(is_number, cells[1:]))
    ]
    if len(vectors) >= SHARE * len(lines) - 1 and len(set(vectors)) == 1:
        remedy = "name the file in model.pretrained, or look at it with `heedful vectors`"
        return TextShape("foreign", "word vectors", remedy)
    if lines[0].startswith(": ") and share(bool(ANALOGY.fullmatch(line)) or line[0] == ":" for line in lines) >= SHARE:
        return TextShape("foreign", "analogies", "word vectors are scored with them: `heedful vectors analogy --help`")
    if share(bool(WORDS.fullmatch(line)) for line in lines) >= SHARE:
        remedy = "word vectors are scored with them: `heedful vectors similarity --help`"
        return TextShape("tabs", "pairs of words with numbers", remedy)
    return None


def shape_of_columns(lines: Sequence[str]) -> TextShape | None:
    """Recognise a table in a text file; None for running text."""
    for separator in ("tabs", "semicolons"):
        if (columns := width(lines, separator)) > 1 and (separator == "tabs" or columns > 2 or '"' in lines[-1]):
            return TextShape(separator, f"{columns} columns with {separator} between them")
    return ragged(lines)


def shape_of_table(lines: Sequence[str], path: Path) -> TextShape | None:
    """Recognise a table with tabs whose cells are in quotes, whose name says .csv, or whose rows differ; else None."""
    tabs = width(lines, "tabs")
    if tabs > 1 and (ending_of(path) == ".csv" or is_quoted(lines)):
        quoted = ", in quotes" * is_quoted(lines)
        return TextShape("tabs", f"a table with tabs{quoted}") if width(lines, "commas") == 1 else None
    return None if any(width(lines, separator) > 1 for separator in CHARACTERS) else ragged(lines)


def ragged(lines: Sequence[str]) -> TextShape | None:
    """Recognise a table with tabs of which some rows have more columns than most, as STS-B has; None for others."""
    counts = [line.count("\t") for line in lines]
    fewest = min(counts)
    if fewest < 2 or 2 * counts.count(fewest) < len(counts):
        return None
    content = f"{fewest + 1} columns with tabs between them, and more in some rows"
    return TextShape("tabs", content + ", in quotes" * is_quoted(lines))


def is_quoted(lines: Sequence[str]) -> bool:
    """True if the cells of a table with tabs are in quotes that do not belong to the texts."""
    cells = [cell for line in lines for cell in line.split("\t") if cell.startswith('"')]
    whole = [cell for cell in cells if len(cell) > 1 and QUOTED.fullmatch(cell)]
    if not cells or len(whole) < SHARE * len(cells):
        return False
    return any('""' in cell[1:-1] for cell in whole) or len(cells) >= SHARE * len(lines)


def shape_of_json(lines: Sequence[str], path: Path) -> TextShape | None:
    """Recognise what a JSON file holds: an object in each line, questions on passages, or other values."""
    beginning = "\n".join(lines)
    if '"paragraphs"' in beginning and '"context"' in beginning:
        return TextShape("questions", "questions on passages (SQuAD)")
    try:
        objects = [json.loads(line) for line in lines[: len(lines) - (len(lines) == LOOKED_AT)]]
    except (ValueError, RecursionError):
        objects = []
    if len(lines) > 1 and objects and all(isinstance(values, dict) for values in objects):
        is_plain = ending_of(path) == ".jsonl" and not any(map(is_deep, objects))
        return None if is_plain else TextShape("objects", "JSON objects, one a line")
    is_running = ending_of(path) != ".json" and len(lines) < LOOKED_AT and not is_json(beginning)
    return None if ending_of(path) in NAMED or is_running else TextShape("json", "JSON")


def is_json(text: str) -> bool:
    """True if a text is JSON: some running text begins with a bracket, too."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_deep(values: dict[str, object]) -> bool:
    """True if a JSON object has texts in fields that are objects, or lists of words with a list of tags."""
    lists = [value for value in values.values() if isinstance(value, list)]
    inner = [part for value in values.values() if isinstance(value, dict) for part in value.values()]
    return any(isinstance(part, str) or "context" in values for part in inner) or (
        len(lists) > 1 and len({len(value) for value in lists}) == 1 and "tokens" in values
    )


def share(matches: Iterable[bool]) -> float:
    """Share of true values; 0 of none."""
    values = list(matches)
    return sum(values) / max(1, len(values))
