"""Data sets in text files that look like running text by their name: JSON, CoNLL, fastText, TREC, and tables with tabs.

A language model of such a file learns brackets and labels. So their shapes are recognised by their first lines.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.readers.files import BadUtf8, read_lines

LOOKED_AT = 500  # lines
FEWEST_LINES = 3  # fewer do not show a shape
SHARE = 0.95  # of the lines that have the shape
MOST_LABELS = 60  # of a file with a label at the beginning of each line

JSON = re.compile(r"\s*(\[\s*[\[{\"]|\{\s*\")")
TAG = re.compile(r"O|[BIESLU]-\S+")
FASTTEXT = re.compile(r"__label__\S+(,?\s+__label__\S+)*\s+\S")
TREC = re.compile(r"([A-Z]{2,}(?::\w+)?) \S*[a-z]")


class TextShape(NamedTuple):
    """Shape of a data set: what it holds, in words, and what to do with it."""

    content: str
    remedy: str


def shape_of(path: Path, bad_utf8: BadUtf8) -> TextShape | None:
    """Recognise a data set in a text file by its first lines; None for running text.

    Raises:
        InputError: The file cannot be read, or is not text.
    """
    lines = [line for line in islice(read_lines(path, bad_utf8=bad_utf8), LOOKED_AT) if line.strip()]
    if lines and JSON.match("\n".join(lines[:2])):
        return shape_of_json("\n".join(lines), path)
    content = [line for line in lines if not line.startswith(("# ", "-DOCSTART-"))]
    return shape_of_lines(content, path) if len(content) >= FEWEST_LINES else None


def shape_of_lines(lines: Sequence[str], path: Path) -> TextShape | None:
    """Recognise tagged words, labelled texts and columns; None for running text."""
    if share(len(cells) > 1 and bool(TAG.fullmatch(cells[-1])) for cells in map(str.split, lines)) >= SHARE:
        return TextShape("words with tags (CoNLL)", "for a tagger, copy recipes/wnut17 and name this file in [data]")
    if share(bool(FASTTEXT.match(line)) for line in lines) >= SHARE:
        remedy = f"for a classifier, write the columns label and text into {tsv(path)}"
        return TextShape("fastText labels and texts", remedy)
    labels = [match[1] for line in lines if (match := TREC.match(line))]
    if len(labels) >= SHARE * len(lines) and len(set(labels)) <= min(MOST_LABELS, len(lines) // 2):
        remedy = f"for a classifier, write a tab after each label, into {tsv(path)}"
        return TextShape("a label before each text", remedy)
    tabs = {line.count("\t") for line in lines}
    if len(tabs) == 1 and tabs != {0}:
        return TextShape(f"{tabs.pop() + 1} columns", f"to use its columns, copy it to {tsv(path)} and give that")
    return None


def shape_of_json(beginning: str, path: Path) -> TextShape:
    """Recognise what a JSON file holds: questions on passages, or other objects."""
    if '"paragraphs"' in beginning and '"context"' in beginning:
        remedy = "for question answering, copy recipes/xquad and name this file in [data]"
        return TextShape("questions on passages (SQuAD)", remedy)
    lines = path.with_suffix(".jsonl").name
    return TextShape("JSON", f"for its texts and labels, write one object a line into {lines}, as `jq -c '.[]'` does")


def share(matches: Iterable[bool]) -> float:
    """Share of true values; 0 of none."""
    values = list(matches)
    return sum(values) / max(1, len(values))


def tsv(path: Path) -> str:
    """Name of the table with tabs that a text file becomes."""
    return path.with_suffix(".tsv").name
