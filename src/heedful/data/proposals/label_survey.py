"""Survey of labelled text: its classes, the lengths of its texts, contradictions, and texts that may be held out."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from heedful.config.schema import CorpusConfig
from heedful.data.proposals.pair_survey import Side, TextStatistics, near_hash, source_hash
from heedful.data.readers.header import whole_number
from heedful.data.readers.labelled import Example
from heedful.errors import InputError


class Contradictions(NamedTuple):
    """Equal texts with different labels: how many texts, and the lines of two examples of one of them, from 1."""

    texts: int
    lines: tuple[int, int] | None


@dataclass(frozen=True)
class LabelSurvey:
    """Statistics of labelled text: texts, counts of labels, empty texts, contradictions, and hashes for a split."""

    side: Side  # the texts; of a pair, both as one
    is_pairs: bool
    labels: Counter[str]
    empty: int  # examples without text
    groups: dict[int, set[str]]  # the labels of each group of near copies that can be held out, by their near hash
    longest_at: int  # the line of the longest text, from 1
    contradictions: Contradictions

    @property
    def examples(self) -> int:
        """The number of labelled examples."""
        return self.labels.total()

    @property
    def counts_rows(self) -> bool:
        """True if the labels may be ids or row numbers: whole numbers, no two of them equal."""
        return len(self.labels) == self.examples and all((whole_number(x) or x).isdecimal() for x in self.labels)


def lookalikes_among(labels: Iterable[str]) -> list[list[str]]:
    """Groups of labels that differ only in capitals or blanks, or are the same number, such as 1 and 1.0."""
    groups: dict[str | Decimal, list[str]] = defaultdict(list)
    for label in labels:
        groups[sense_of(label)].append(label)
    return [group for group in groups.values() if len(group) > 1]


def sense_of(label: str) -> str | Decimal:
    """The number that a label is, or the label without capitals and blanks; of two labels with one sense, one slipped.

    A whole number that begins with 0 or + is a code rather than a number.
    """
    written = "".join(label.split()).casefold()
    if re.fullmatch(r"-?(0|[1-9]\d*)([.]\d+)?(e[+-]?\d+)?", written, re.ASCII):
        return Decimal(written)
    return written


def text_of(example: Example) -> str:
    """The text of a labelled example; of a pair of texts, both with a tab between them."""
    return example.text if example.pair is None else f"{example.text}\t{example.pair}"


def survey_labelled(examples: Iterable[Example], corpus: CorpusConfig) -> LabelSurvey:
    """Survey the labelled examples of a corpus, read once; memory grows with the number of different texts.

    Raises:
        InputError: The examples cannot be read, or there are none.
    """
    tally, labels = TextStatistics(), Counter[str]()
    groups: dict[int, set[str]] = {}
    numbers: dict[str, int] = {}  # the number of each label, in order of appearance
    hashes, labelled, lines = array("Q"), array("L"), array("L")  # of examples with text
    empty = longest = longest_at = 0
    for example in examples:
        text = text_of(example)
        tally.add(text)
        labels[example.label] += 1
        if text.strip():
            hashes.append(source_hash(text))
            groups.setdefault(near_hash(text), set()).add(example.label)
            labelled.append(numbers.setdefault(example.label, len(numbers)))
            lines.append(example.line)
        else:
            empty += 1
        if len(text) > longest:
            longest, longest_at = len(text), example.line
    if not labels:
        raise InputError(f"{corpus.source}: there are no examples in it; check the file")
    contradictions = find_contradictions(*map(np.array, (hashes, labelled, lines)))
    is_pairs = corpus.pair_field is not None
    return LabelSurvey(tally.side(), is_pairs, labels, empty, groups, longest_at, contradictions)


def find_contradictions(hashes: np.ndarray, labels: np.ndarray, lines: np.ndarray) -> Contradictions:
    """Find contradictions in labelled text: equal texts with different labels.

    Args:
        hashes: The hash of the text of each example, uint64, (n,).
        labels: The number of the label of each example, (n,).
        lines: The line of each example, (n,).
    """
    order = np.lexsort((lines, labels, hashes))
    hashes, labels, lines = hashes[order], labels[order], lines[order]
    at = np.flatnonzero((hashes[1:] == hashes[:-1]) & (labels[1:] != labels[:-1]))
    if not len(at):
        return Contradictions(0, None)
    first, second = sorted((int(lines[at[0]]), int(lines[at[0] + 1])))
    return Contradictions(len(np.unique(hashes[at])), (first, second))
