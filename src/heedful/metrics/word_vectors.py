"""Evaluation of word vectors: correlation with human judgements of similarity, and accuracy on analogies.

N pairs or questions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import isfinite
from pathlib import Path

import numpy as np

from heedful.data.readers.files import read_lines
from heedful.data.word_vectors import VectorSpace
from heedful.errors import InputError
from heedful.metrics.correlation import spearman
from heedful.wording import counted


@dataclass(frozen=True)
class Judgements:
    """Pairs of words with human judgements of their similarity, such as WordSim-353, SimLex-999 or MEN."""

    pairs: list[tuple[str, str]]
    scores: list[float]


@dataclass(frozen=True)
class SimilarityScore:
    """Agreement of word vectors with human judgements, on the pairs of which both words have a vector."""

    correlation: float  # Spearman's; nan with fewer than two pairs
    covered: int  # pairs
    pairs: int


@dataclass(frozen=True)
class AnalogyScore:
    """Answers to the analogies of one section, of which all four words have a vector."""

    section: str
    right: int
    covered: int
    questions: int

    @property
    def accuracy(self) -> float:
        """The share of right answers among the questions that are covered; nan if there is none."""
        return self.right / self.covered if self.covered else float("nan")


def read_judgements(path: Path) -> Judgements:
    """Read pairs of words with a judgement: two words and a number on each line, apart by tabs, commas or spaces.

    The judgement is the first column with a number in the first two lines: SimLex-999 has the part of speech before it,
    and WordSim-353 names the columns of its judges by numbers. Lines that begin with # and a first line
    of column names are left out, as are other columns.

    Raises:
        InputError: The file cannot be read, or a line holds no two words and a finite number.
    """
    pairs, scores = [], []
    lines = enumerate(read_lines(path), start=1)
    rows = ((number, cells(line)) for number, line in lines if line.strip() and not line.startswith("#"))
    first = list(islice(rows, 2))
    columns = (i for _, fields in first for i in range(2, len(fields)) if judgement(fields, i) is not None)
    column = min(columns, default=2)
    # A first line without a judgement has the names of the columns.
    if first and len(first[0][1]) > 2 and judgement(first[0][1], column) is None:
        del first[0]
    for number, fields in chain(first, rows):
        score = judgement(fields, column)
        if score is None:
            raise InputError(f"{path}, line {number}: not two words and a number; check the file")
        pairs.append((fields[0], fields[1]))
        scores.append(score)
    if not pairs:
        raise InputError(f"{path}: holds no pairs of words with a number")
    return Judgements(pairs, scores)


def cells(line: str) -> list[str]:
    """Cut a line at tabs, or else at commas, or else at spaces."""
    separator = next((separator for separator in "\t," if separator in line), None)
    return [cell.strip() for cell in line.split(separator)]


def judgement(fields: Sequence[str], column: int) -> float | None:
    """Read the judgement in a column of a line; None for what is not a finite number."""
    try:
        value = float(fields[column])
    except (ValueError, IndexError):
        return None
    return value if isfinite(value) else None


def similarity_score(space: VectorSpace, judgements: Judgements) -> SimilarityScore:
    """Correlate the cosines of pairs of words with human judgements, by rank (Spearman)."""
    rows = [
        (first, second, score)
        for (a, b), score in zip(judgements.pairs, judgements.scores, strict=True)
        if (first := space.find(a)) is not None and (second := space.find(b)) is not None
    ]
    if len(rows) < 2:
        return SimilarityScore(float("nan"), len(rows), len(judgements.pairs))
    first, second, scores = map(np.array, zip(*rows, strict=True))
    cosines = (space.directions[first] * space.directions[second]).sum(1)
    return SimilarityScore(spearman(cosines, scores), len(rows), len(judgements.pairs))


def read_analogies(path: Path) -> dict[str, list[list[str]]]:
    """Read analogies by section: lines of four words "a b c d", a to b as c to d, below lines ": section".

    Raises:
        InputError: The file cannot be read, a line has not four words, or there is none.
    """
    sections: dict[str, list[list[str]]] = {}
    name = ""
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split()
        if line.startswith(":"):
            name = line.removeprefix(":").strip()
        elif len(fields) == 4:
            sections.setdefault(name, []).append(fields)
        elif fields:
            raise InputError(
                f"{path}, line {number}: {counted(len(fields), 'words')} where an analogy has four; check the file"
            )
    if not sections:
        raise InputError(f"{path}: holds no analogies, which are lines of four words")
    return sections


def analogy_scores(
    space: VectorSpace, sections: dict[str, list[list[str]]], among: int | None = None
) -> Iterator[AnalogyScore]:
    """Yield the score of each section of analogies, as by `read_analogies`.

    Answers come from the first `among` words, and questions with other words do not count; None: all words.
    """
    limit = len(space.words) if among is None else among
    for name, questions in sections.items():
        rows = [[space.find(word) for word in question] for question in questions]
        rows = [row for row in rows if all(place is not None and place < limit for place in row)]
        covered = np.array(rows, np.int64).reshape(-1, 4)
        right = int((space.solve(covered[:, :3], among) == covered[:, 3]).sum())
        yield AnalogyScore(name, right, len(covered), len(questions))
