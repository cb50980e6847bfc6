"""Records of the data sets that `text_shapes` recognises, in the forms that heedful trains on."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.proposals.text_shapes import PART_OF_SPEECH, TAG, TextShape
from heedful.data.readers.files import BadUtf8, decode_lines, open_bytes, read_lines
from heedful.data.readers.header import is_header
from heedful.data.readers.separators import CHARACTERS
from heedful.data.readers.squad import LONGEST_FILE
from heedful.errors import InputError

Values = dict[str, Any]

LABEL = re.compile(r"\s*(?P<label>[A-Z]{2,}(:\w+)?)(\s+|$)")
FASTTEXT_LABELS = re.compile(r"\s*__label__(?P<label>[^\s,]+),?(\s+__label__\S+)*(\s+|$)")
LABELS = {"labels": LABEL, "fasttext": FASTTEXT_LABELS, "first words": re.compile(r"\s*(?P<label>\S+)(\s+|$)")}
SOURCE, TARGET = "text", "label"  # keys of a text with its label
TAG_KEYS = ("ner_tags", "tags", "labels", "iob", "bio", "ner", "upos", "pos_tags", "pos", "xpos")


class Records(NamedTuple):
    """A data set in a form that heedful trains on: the ending of its file, and its lines."""

    ending: str  # .jsonl, .json for questions on passages, .conll for tagged words
    lines: Iterator[str]


def records_of(path: Path, shape: TextShape, bad_utf8: BadUtf8) -> Records:
    """Read a data set of a known shape.

    Raises:
        InputError: It cannot be read, or holds something else than it seems to.
    """
    if shape.kind in CHARACTERS:
        return Records(
            ".jsonl", map(json_of, rows_of(path, CHARACTERS[shape.kind], bad_utf8, quoted="quotes" in shape.content))
        )
    if shape.kind in LABELS:
        return Records(".jsonl", map(json_of, labelled_lines(path, shape, bad_utf8)))
    objects = map(flat, objects_of(path, shape, bad_utf8))
    first = next(objects, {})
    everything = iter([first, *objects])
    if {"question", "context", "answers"} <= first.keys() and isinstance(first["answers"], dict):
        return Records(".json", iter([json.dumps({"data": list(map(article_of, everything))}, ensure_ascii=False)]))
    if key := key_of_tags(first):
        return Records(".conll", (line for values in everything for line in tagged_lines(values, key, path)))
    return Records(".jsonl", (json_of({key: text_of(value) for key, value in values.items()}) for values in everything))


def json_of(values: Values) -> str:
    """Write an object as a line of JSON."""
    return json.dumps(values, ensure_ascii=False)


def text_of(value: object) -> object:
    """A value of a record as text; lists stay lists, and null is an empty text."""
    if isinstance(value, str | list):
        return value
    return "" if value is None else json.dumps(value)


def labelled_lines(path: Path, shape: TextShape, bad_utf8: BadUtf8) -> Iterator[Values]:
    """Yield the text and the label of each line; of several labels of fastText the first one.

    Raises:
        InputError: A line has no label.
    """
    shaped = LABELS[shape.kind]
    for number, line in enumerate(read_lines(path, bad_utf8=bad_utf8), start=1):
        if line.strip():
            if not (match := shaped.match(line)):
                raise InputError(f"{path}, line {number}: {line[:40]!r} does not begin with a label; correct the line")
            yield {SOURCE: line[match.end() :].strip(), TARGET: match["label"]}


def rows_of(path: Path, separator: str, bad_utf8: BadUtf8, *, quoted: bool) -> Iterator[Values]:
    """Yield the rows of a table by the names of its columns, or their numbers from 1 where it has no header.

    Cells of a row beyond those of the narrowest row, in which STS-B names its sources, are left out.

    Raises:
        InputError: A quotation does not end.
    """
    policy: BadUtf8 = "replace" if bad_utf8 == "skip" else bad_utf8
    quoting = csv.QUOTE_NONE if separator == "\t" and not quoted else csv.QUOTE_MINIMAL
    lines = (f"{line}\n" for line in read_lines(path, bad_utf8=policy) if not line.startswith("# "))
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator, quoting=quoting, strict=quoted) if row]
    except csv.Error as error:
        raise InputError(
            f"{path}: a quotation in it does not end ({error}); correct it, or save it as .jsonl"
        ) from error
    size = min(map(len, rows), default=0)
    cells = [row[:size] for row in rows]
    names = [str(number) for number in range(1, size + 1)]
    if cells and is_header(cells[0], cells[1:]):
        names = [name.strip() or number for name, number in zip(cells.pop(0), names, strict=True)]
    yield from (dict(zip(names, row, strict=True)) for row in cells)


def objects_of(path: Path, shape: TextShape, bad_utf8: BadUtf8) -> Iterator[Values]:
    """Yield the objects of a file of JSON: one a line, or those of its array.

    Raises:
        InputError: The file is broken, or holds no list of objects.
    """
    policy: BadUtf8 = "replace" if bad_utf8 == "skip" else bad_utf8
    with open_bytes(path) as stream:
        lines = (line or "" for line in decode_lines(stream, str(path), bad_utf8=policy, longest=LONGEST_FILE))
        if shape.kind == "objects":
            for number, line in enumerate(lines, start=1):
                values = parsed(line, f"{path}, line {number}") if line.strip() else {}
                if not isinstance(values, dict):
                    raise InputError(f"{path}, line {number}: not a JSON object; each line must be one object")
                if values:
                    yield values
            return
        content = parsed("\n".join(lines), str(path))
    found = listed_in(content)
    if not found:
        held = (
            f"an object with the keys {', '.join(map(repr, list(content)[:12]))}"
            if isinstance(content, dict)
            else "JSON"
        )
        raise InputError(
            f"{path}: holds {held}, and no list of objects with the same keys; write one object a line into "
            f"{path.with_suffix('.jsonl').name}"
        )
    yield from found


def parsed(text: str, place: str) -> Any:
    """Parse JSON.

    Raises:
        InputError: It is broken.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); correct it, or save it again") from error


def listed_in(content: Any) -> list[Values]:
    """The objects that a JSON value holds: in a list, below a key, or column by column as pandas writes them."""
    if isinstance(content, list):
        if all(isinstance(item, dict) for item in content):
            return content
        if all(isinstance(item, str) for item in content):
            return [{SOURCE: item} for item in content]
        is_table = all(isinstance(item, list) and len(item) == len(content[0]) for item in content)
        return listed_rows(content) if is_table else []
    values = list(content.values()) if isinstance(content, dict) else []
    lists = [value for value in values if isinstance(value, list) and value and isinstance(value[0], dict)]
    return listed_in(lists[0]) if len(lists) == 1 else listed_columns(content, values)


def listed_columns(content: Any, values: list[Any]) -> list[Values]:
    """The objects of a JSON object of columns, each a list or an object by row; or of one of records by their ids."""
    if values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        return [dict(zip(content, row, strict=True)) for row in zip(*values, strict=True)]
    if not values or not all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
        return []
    if len(values[0]) > len(values):
        return [{key: column[row] for key, column in content.items()} for row in values[0]]
    return values


def listed_rows(rows: Sequence[Sequence[Any]]) -> list[Values]:
    """The objects of a list of rows, of which the first may be a header."""
    texts = [[str(text_of(cell)) for cell in row] for row in rows]
    names = [str(number) for number in range(1, len(texts[0]) + 1)]
    if is_header(texts[0], texts[1:]):
        names = texts.pop(0)
    return [dict(zip(names, row, strict=True)) for row in texts]


def flat(values: Values) -> Values:
    """An object without objects in it: {"translation": {"en": ...}} becomes {"en": ...}; answers to questions stay."""
    if "context" in values and "question" in values:
        return values
    inner = {key: value for part in values.values() if isinstance(part, dict) for key, value in part.items()}
    outer = {key: value for key, value in values.items() if not isinstance(value, dict)}
    return {**inner, **outer}


def article_of(values: Values) -> Values:
    """A question on a passage, with lists of answers and their places, as an article of SQuAD."""
    answers = values["answers"]
    pairs = zip(answers.get("text", []), answers.get("answer_start", []), strict=False)
    entry = {"id": str(values.get("id", values["question"])), "question": values["question"]}
    entry["answers"] = [{"text": text, "answer_start": start} for text, start in pairs]
    entry["is_impossible"] = not entry["answers"]
    return {"title": values.get("title", ""), "paragraphs": [{"context": values["context"], "qas": [entry]}]}


def key_of_tags(values: Values) -> str | None:
    """The key of the tags of a list of words; None if a record holds no words with tags in words."""
    words: Any = values.get("tokens", values.get("words"))
    for key in TAG_KEYS if isinstance(words, list) else ():
        tags = values.get(key)
        if not isinstance(tags, list) or len(tags) != len(words):
            continue
        if any(all(kind.fullmatch(str(tag)) for tag in tags) for kind in (TAG, PART_OF_SPEECH)):
            return key
    return None


def tagged_lines(values: Values, key: str, path: Path) -> Iterator[str]:
    """Yield a sentence as lines of words and tags, with an empty line after it.

    Raises:
        InputError: A sentence has not as many tags as words.
    """
    words: list[Any] = values.get("tokens", values.get("words")) or []
    tags: list[Any] = values.get(key) or []
    if len(words) != len(tags):
        raise InputError(
            f"{path}: {len(words)} words with {len(tags)} tags: {' '.join(map(str, words))[:60]!r}; correct them"
        )
    yield from (
        "\t".join((re.sub(r"\s+", "_", str(word).strip()) or "_", str(tag)))
        for word, tag in zip(words, tags, strict=True)
    )
    yield ""
