"""Shapes of data sets (JSON, CoNLL, fastText, TREC, misnamed tables), recognised by their contents."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heedful.data.readers.columns import is_header, is_number
from heedful.data.readers.files import BadUtf8, decode_lines, ending_of, open_bytes, read_lines
from heedful.data.readers.rows import CHARACTERS, width
from heedful.data.readers.squad import MAX_LINE_BYTES
from heedful.data.readers.tagged import CONLLU_COLUMNS
from heedful.errors import InputError

SAMPLE_LINES = 500
MIN_LINES = 3  # fewer do not show a shape
SHARE = 0.95  # minimum share of the lines with the shape
MAX_LABELS = 60  # in a file with a label at the start of each line
MAX_SENTENCE = 100  # words, on average
MAX_FIRST_WORDS, MIN_LABELLED = 6, 20  # a few distinct words at the beginning of many lines may be labels
MIN_NUMBERS = 10  # in a word vector

JSON = re.compile(r"\s*(\[\s*[\[{\"]|\{\s*\")")
MARKUP = re.compile(r"\s*<(\?xml|!doctype|html|tmx|xliff|srcset|refset|tstset)\b", re.IGNORECASE)
TAG = re.compile(r"O|[BIESLU]-\S+")
PART_OF_SPEECH = re.compile(r"[A-Z$.,:`'#()-]{1,8}")
FASTTEXT = re.compile(r"__label__\S+(,?\s+__label__\S+)*\s+\S")
TREC = re.compile(r"([A-Z]{2,}(?::\w+)?) \S*[a-z]")
ANALOGY = re.compile(r"\S+( \S+){3}")
WORD_PAIR = re.compile(r"\S+\t\S+\t[\d.]+")
QUOTED = re.compile(r'"([^"]|"")*"')
TABLE_ENDINGS = (".tsv", ".csv", ".jsonl")

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
    """Shape of a data set: its kind, its contents, and what to do with it if no task can use it directly."""

    kind: Kind
    content: str
    remedy: str = ""


def shape_of(path: Path, bad_utf8: BadUtf8) -> TextShape | None:
    """Recognise a data set by the first lines of a file; None for running text, and for a correctly named table."""
    with open_bytes(path) as stream:
        decoded = decode_lines(stream, str(path), bad_utf8=bad_utf8, longest=MAX_LINE_BYTES)
        first = [line for line in islice(decoded, SAMPLE_LINES) if line is not None]
    lines = [line for line in first if line.strip()]
    if lines and JSON.match("\n".join(lines[:2])):
        return shape_of_json(lines, path)
    if lines and MARKUP.match(lines[0]):
        remedy = "extract its texts; save translations as two text files, or as a .tsv table"
        return TextShape("foreign", "XML or HTML", remedy)
    content = [line for line in lines if not line.startswith(("# ", "-DOCSTART-"))]
    if len(content) < MIN_LINES:
        return None
    if shape := shape_of_words(first, content):
        return shape
    if ending_of(path) not in TABLE_ENDINGS:
        return shape_of_lines(content)
    has_comments = lines[0] != content[0]  # a table does not begin with comments
    return shape_of_table(content, path) or (shape_of_word_lists(content) if has_comments else None)


def shape_of_words(lines: Sequence[str], content: Sequence[str]) -> TextShape | None:
    """Recognise files with a word and its tag on each line: tags of spans, or of single words (parts of speech)."""
    rows = [line.split("\t") if "\t" in line else line.split() for line in content]
    if share(len(cells) > 1 and bool(TAG.fullmatch(cells[-1].strip())) for cells in rows) >= SHARE:
        return TextShape("tagged", "words with tags (CoNLL)")
    blank = sum(not line.strip() for line in lines)
    widths = {len(row) for row in rows}
    if not blank or len(content) > MAX_SENTENCE * blank or len(widths) > 1 or widths == {1}:
        return None
    if (
        widths == {CONLLU_COLUMNS}
        and share(row[0].replace("-", "").replace(".", "").isdecimal() for row in rows) >= SHARE
    ):
        return TextShape("tagged", "words with their parts of speech (CoNLL-U)")
    if share(bool(PART_OF_SPEECH.fullmatch(row[-1])) for row in rows) >= SHARE:
        return TextShape("parts of speech", "words with tags of single words, such as parts of speech")
    return None


def shape_of_lines(lines: Sequence[str]) -> TextShape | None:
    """Recognise labelled texts, vectors and columns; None for running text."""
    if share(bool(FASTTEXT.match(line)) for line in lines) >= SHARE:
        several = any(line.count("__label__") > 1 for line in lines)
        return TextShape("fasttext", "fastText labels and texts" + " (only the first of several labels)" * several)
    labels = [match[1] for line in lines if (match := TREC.match(line))]
    if len(labels) >= SHARE * len(lines) and 1 < len(set(labels)) <= min(MAX_LABELS, len(lines) // 2):
        return TextShape("labels", "a label before each text")

    # The first words of lines may be labels if they are few and hardly occur elsewhere, except in a conversation.
    rows = [line.split() for line in lines]
    words = {row[0] for row in rows}
    elsewhere = share(not words.isdisjoint(row[1:]) for row in rows)
    has_few = 1 < len(words) <= MAX_FIRST_WORDS and len(lines) >= MIN_LABELLED and elsewhere <= 1 - SHARE
    is_talk = any(word.endswith((":", ".")) for word in words) or any("\t" in line for line in lines)
    if has_few and not is_talk:
        return TextShape("first words", f"lines that begin with {', '.join(sorted(words))}, which may be labels")

    if shape := shape_of_word_lists(lines):
        return shape
    for separator in ("tabs", "semicolons"):
        columns = width(lines, separator)
        if columns > 1 and (separator == "tabs" or columns > 2 or '"' in lines[-1]):
            return TextShape(separator, f"{columns} columns separated by {separator}")
    return shape_of_ragged_table(lines)


def shape_of_word_lists(lines: Sequence[str]) -> TextShape | None:
    """Recognise word vectors and the lists that evaluate them; None for other lines."""
    vectors = [
        len(cells) for cells in map(str.split, lines) if len(cells) > MIN_NUMBERS and all(map(is_number, cells[1:]))
    ]
    if len(vectors) >= SHARE * len(lines) - 1 and len(set(vectors)) == 1:
        remedy = "set model.source_vectors to the file, or inspect it with `heedful vectors`"
        return TextShape("foreign", "word vectors", remedy)
    if lines[0].startswith(": ") and share(bool(ANALOGY.fullmatch(line)) or line[0] == ":" for line in lines) >= SHARE:
        return TextShape("foreign", "analogies", "they evaluate word vectors: see `heedful vectors analogy --help`")
    if share(bool(WORD_PAIR.fullmatch(line)) for line in lines) >= SHARE:
        remedy = "they evaluate word vectors: see `heedful vectors similarity --help`"
        return TextShape("tabs", "word pairs with numbers", remedy)
    return None


def shape_of_table(lines: Sequence[str], path: Path) -> TextShape | None:
    """Recognise a tab-separated table with quoted cells, the extension .csv or rows of unequal length."""
    tabs = width(lines, "tabs")
    quoted = is_quoted(lines)
    if tabs > 1 and (ending_of(path) == ".csv" or quoted):
        content = "tab-separated table" + " in quotes" * quoted
        return TextShape("tabs", content) if width(lines, "commas") == 1 else None
    return None if any(width(lines, separator) > 1 for separator in CHARACTERS) else shape_of_ragged_table(lines)


def shape_of_ragged_table(lines: Sequence[str]) -> TextShape | None:
    """Recognise a tab-separated table in which some rows have more columns than most, as in STS-B; None for others."""
    counts = [line.count("\t") for line in lines]
    fewest = min(counts)
    if fewest < 2 or 2 * counts.count(fewest) < len(counts):
        return None
    content = f"{fewest + 1} columns separated by tabs, more in some rows"
    return TextShape("tabs", content + ", in quotes" * is_quoted(lines))


def is_quoted(lines: Sequence[str]) -> bool:
    """Return True if the cells of a tab-separated table are in quotes that do not belong to the texts."""
    cells = [cell for line in lines for cell in line.split("\t") if cell.startswith('"')]
    whole = [cell for cell in cells if len(cell) > 1 and QUOTED.fullmatch(cell)]
    if not cells or len(whole) < SHARE * len(cells):
        return False
    return any('""' in cell[1:-1] for cell in whole) or len(cells) >= SHARE * len(lines)


def shape_of_json(lines: Sequence[str], path: Path) -> TextShape | None:
    """Recognise what a JSON file contains: one object per line, questions about passages, or other values."""
    beginning = "\n".join(lines)
    if '"paragraphs"' in beginning and '"context"' in beginning:
        return TextShape("questions", "questions about passages (SQuAD)")
    try:
        objects = [json.loads(line) for line in lines[: len(lines) - (len(lines) == SAMPLE_LINES)]]
    except (ValueError, RecursionError):
        objects = []
    if len(lines) > 1 and objects and all(isinstance(values, dict) for values in objects):
        is_flat = ending_of(path) == ".jsonl" and not any(map(is_nested, objects))
        return None if is_flat else TextShape("objects", "JSON objects, one per line")
    if ending_of(path) in TABLE_ENDINGS:
        return None
    if ending_of(path) != ".json" and len(lines) < SAMPLE_LINES:  # running text may begin with a bracket, too
        try:
            json.loads(beginning)
        except (ValueError, RecursionError):
            return None
    return TextShape("json", "JSON")


def is_nested(values: dict[str, object]) -> bool:
    """Return True if a JSON object has texts or answers in nested objects, or a list of tags next to its tokens."""
    lists = [value for value in values.values() if isinstance(value, list)]
    inner = [part for value in values.values() if isinstance(value, dict) for part in value.values()]
    return any(isinstance(part, str) or "context" in values for part in inner) or (
        len(lists) > 1 and len({len(value) for value in lists}) == 1 and "tokens" in values
    )


def share(matches: Iterable[bool]) -> float:
    """Return the share of true values; 0 if there are no values."""
    values = list(matches)
    return sum(values) / max(1, len(values))


Values = dict[str, Any]

LABEL_BEGINNINGS = {
    "labels": re.compile(r"\s*(?P<label>[A-Z]{2,}(:\w+)?)(\s+|$)"),
    "fasttext": re.compile(r"\s*__label__(?P<label>[^\s,]+),?(\s+__label__\S+)*(\s+|$)"),
    "first words": re.compile(r"\s*(?P<label>\S+)(\s+|$)"),
}
TAG_KEYS = ("ner_tags", "tags", "labels", "iob", "bio", "ner", "upos", "pos_tags", "pos", "xpos")


def records_of(path: Path, shape: TextShape, bad_utf8: BadUtf8) -> tuple[str, Iterator[str]]:
    """Convert a data set of a known shape to lines that heedful trains on.

    Returns the file extension (.jsonl, .json for questions about passages, .conll for tagged words), and the lines.
    """
    policy: BadUtf8 = "replace" if bad_utf8 == "skip" else bad_utf8
    if shape.kind in CHARACTERS:
        records = table_rows(path, CHARACTERS[shape.kind], policy, quoted="quotes" in shape.content)
    elif shape.kind in LABEL_BEGINNINGS:
        records = labelled_lines(path, LABEL_BEGINNINGS[shape.kind], bad_utf8)
    else:
        objects = map(flatten, read_objects(path, policy, one_a_line=shape.kind == "objects"))
        first = next(objects, {})
        everything = iter([first, *objects])
        if {"question", "context", "answers"} <= first.keys() and isinstance(first["answers"], dict):
            articles = list(map(squad_article, everything))
            return ".json", iter([json.dumps({"data": articles}, ensure_ascii=False)])
        if key := key_of_tags(first):
            return ".conll", (line for values in everything for line in tagged_lines(values, key, path))
        records = ({key: cell_of(value) for key, value in values.items()} for values in everything)
    return ".jsonl", (json.dumps(values, ensure_ascii=False) for values in records)


def cell_of(value: object) -> object:
    """Convert a JSON value to a table cell: strings and lists stay, null becomes "", other values become JSON text."""
    if isinstance(value, str | list):
        return value
    return "" if value is None else json.dumps(value)


def labelled_lines(path: Path, label: re.Pattern[str], bad_utf8: BadUtf8) -> Iterator[Values]:
    """Yield the text and the label of each line; of several fastText labels, only the first."""
    for number, line in enumerate(read_lines(path, bad_utf8=bad_utf8), start=1):
        if line.strip():
            if not (match := label.match(line)):
                raise InputError(f"{path}, line {number}: {line[:40]!r} does not start with a label; correct the line")
            yield {"text": line[match.end() :].strip(), "label": match["label"]}


def table_rows(path: Path, separator: str, bad_utf8: BadUtf8, *, quoted: bool) -> Iterator[Values]:
    """Yield the rows of a table by column name, or by column number from 1 if there is no header.

    Cells beyond the width of the narrowest row are left out; in STS-B, they name the sources.
    """
    quoting = csv.QUOTE_NONE if separator == "\t" and not quoted else csv.QUOTE_MINIMAL
    lines = (f"{line}\n" for line in read_lines(path, bad_utf8=bad_utf8) if not line.startswith("# "))
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator, quoting=quoting, strict=quoted) if row]
    except csv.Error as error:
        raise InputError(
            f"{path}: contains a quoted cell that is not closed ({error}); correct it, or save the table as .jsonl"
        ) from error
    size = min(map(len, rows), default=0)
    yield from named_cells([row[:size] for row in rows])


def named_cells(rows: list[list[str]]) -> list[Values]:
    """Name the cells of rows by a header, or by their column numbers from 1."""
    names = [str(number) for number in range(1, len(rows[0]) + 1)] if rows else []
    if rows and is_header(rows[0], rows[1:]):
        names = [name.strip() or number for name, number in zip(rows[0], names, strict=True)]
        rows = rows[1:]
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_objects(path: Path, bad_utf8: BadUtf8, *, one_a_line: bool) -> Iterator[Values]:
    """Yield the objects of a JSON file: one per line, or those in its array."""

    def parse(text: str, location: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{location}: not JSON ({error}); correct the file, or export it again") from error

    with open_bytes(path) as stream:
        lines = (line or "" for line in decode_lines(stream, str(path), bad_utf8=bad_utf8, longest=MAX_LINE_BYTES))
        if one_a_line:
            for number, line in enumerate(lines, start=1):
                values = parse(line, f"{path}, line {number}") if line.strip() else {}
                if not isinstance(values, dict):
                    raise InputError(f"{path}, line {number}: not a JSON object; each line must be one object")
                if values:
                    yield values
            return
        content = parse("\n".join(lines), str(path))
    objects = objects_in(content)
    if not objects:
        keys = ", ".join(map(repr, list(content)[:12])) if isinstance(content, dict) else ""
        what = f"an object with the keys {keys}" if isinstance(content, dict) else "JSON"
        raise InputError(
            f"{path}: contains {what}, but no list of objects with the same keys; write one object per line to "
            f"{path.with_suffix('.jsonl').name}"
        )
    yield from objects


def objects_in(content: Any) -> list[Values]:
    """Find the objects in a JSON value: in a list, below a key, by id, or column by column as pandas writes them.

    A string in a list becomes an object with a "text"; a list in a list is a row of a table.
    """
    if isinstance(content, list):
        if all(isinstance(item, dict) for item in content):
            objects = content
        elif all(isinstance(item, str) for item in content):
            objects = [{"text": item} for item in content]
        elif all(isinstance(item, list) and len(item) == len(content[0]) for item in content):
            objects = named_cells([[str(cell_of(cell)) for cell in row] for row in content])
        else:
            objects = []
        return objects
    values = list(content.values()) if isinstance(content, dict) else []
    lists = [value for value in values if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) == 1:
        return objects_in(lists[0])
    # Columns, each a list or an object by row; or records by their ids.
    if values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        return [dict(zip(content, row, strict=True)) for row in zip(*values, strict=True)]
    if values and all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        has_columns = len(values[0]) > len(values)
        return [{key: column[row] for key, column in content.items()} for row in values[0]] if has_columns else values
    return []


def flatten(values: Values) -> Values:
    """Flatten nested objects: {"translation": {"en": ...}} becomes {"en": ...}; answers to questions are kept."""
    if "context" in values and "question" in values:
        return values
    inner = {key: value for part in values.values() if isinstance(part, dict) for key, value in part.items()}
    outer = {key: value for key, value in values.items() if not isinstance(value, dict)}
    return {**inner, **outer}


def squad_article(values: Values) -> Values:
    """Convert a question about a passage, with lists of answers and their positions, to a SQuAD article."""
    answers = values["answers"]
    pairs = zip(answers.get("text", []), answers.get("answer_start", []), strict=False)
    entry = {"id": str(values.get("id", values["question"])), "question": values["question"]}
    entry["answers"] = [{"text": text, "answer_start": start} for text, start in pairs]
    entry["is_impossible"] = not entry["answers"]
    return {"title": values.get("title", ""), "paragraphs": [{"context": values["context"], "qas": [entry]}]}


def key_of_tags(values: Values) -> str | None:
    """Find the key of the tags for a list of words; None if an object does not contain words with textual tags."""
    words: Any = values.get("tokens", values.get("words"))
    for key in TAG_KEYS if isinstance(words, list) else ():
        tags = values.get(key)
        if not isinstance(tags, list) or len(tags) != len(words):
            continue
        if any(all(kind.fullmatch(str(tag)) for tag in tags) for kind in (TAG, PART_OF_SPEECH)):
            return key
    return None


def tagged_lines(values: Values, key: str, path: Path) -> Iterator[str]:
    """Yield a sentence as lines of words and tags, with an empty line after it."""
    words: list[Any] = values.get("tokens", values.get("words")) or []
    tags: list[Any] = values.get(key) or []
    if len(words) != len(tags):
        raise InputError(
            f"{path}: {len(words)} words, but {len(tags)} tags: {' '.join(map(str, words))[:60]!r}; correct them"
        )
    for word, tag in zip(words, tags, strict=True):
        yield "\t".join((re.sub(r"\s+", "_", str(word).strip()) or "_", str(tag)))
    yield ""
