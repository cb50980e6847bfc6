"""Evaluation of word vectors: correlation with human judgements of similarity, and accuracy on analogies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.data.readers.files import read_lines
from heedful.data.word_vectors import VectorSpace
from heedful.errors import InputError
from heedful.metrics.correlation import spearman
from heedful.wording import counted


class Judgement(NamedTuple):
    """Human judgement of the similarity of two words, as in WordSim-353, SimLex-999 or MEN."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class SimilarityScore:
    """Agreement of word vectors with human judgements, on the pairs for which both words have a vector."""

    correlation: float  # Spearman's; NaN with fewer than two pairs
    covered: int  # the number of pairs for which both words have a vector
    pairs: int


@dataclass(frozen=True)
class AnalogyScore:
    """Results on a section of analogies; those whose four words all have vectors are covered."""

    section: str
    right: int
    covered: int
    questions: int

    @property
    def accuracy(self) -> float:
        """Share of correct answers among the covered questions; NaN if none is covered."""
        return self.right / self.covered if self.covered else nan


def read_judgements(path: Path) -> list[Judgement]:
    """Read judgements: two words and a number on each line, separated by tabs or, without tabs, by commas or spaces.

    The judgement is the first column after the words with a number in either of the first two lines: in SimLex-999, the
    part of speech precedes it, and in WordSim-353, the header numbers the judges' columns after it. Lines that begin
    with #, a first line of column names, and other columns are ignored.
    """

    def number_in(fields: Sequence[str], column: int) -> float:  # NaN for anything except a finite number
        try:
            number = float(fields[column])
        except (ValueError, IndexError):
            return nan
        return number if isfinite(number) else nan

    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and not line.startswith("#"):
            # Tabs before commas before spaces, because the words of a table with tabs may contain the others.
            separator = next((separator for separator in "\t," if separator in line), None)
            rows.append((number, [field.strip() for field in line.split(separator)]))
    numeric = (i for _, fields in rows[:2] for i in range(2, len(fields)) if not isnan(number_in(fields, i)))
    column = min(numeric, default=2)
    # A first line without a judgement has the names of the columns.
    if rows and len(rows[0][1]) > 2 and isnan(number_in(rows[0][1], column)):
        del rows[0]
    if not rows:
        raise InputError(f"{path}: has no pairs of words with a number; give another file")
    judgements = [Judgement(fields[0], "".join(fields[1:2]), number_in(fields, column)) for _, fields in rows]
    for (number, _), judgement in zip(rows, judgements, strict=True):
        if isnan(judgement.score):
            raise InputError(f"{path}, line {number}: not two words and a number; correct the line")
    return judgements


def similarity_score(space: VectorSpace, judgements: Sequence[Judgement]) -> SimilarityScore:
    """Correlate the cosine similarities of word pairs with human judgements, by rank (Spearman)."""
    pairs = [(space.find(one.first), space.find(one.second), one.score) for one in judgements]
    rows = [row for row in pairs if row[0] is not None and row[1] is not None]
    if len(rows) < 2:
        return SimilarityScore(nan, len(rows), len(judgements))
    first, second, scores = map(np.array, zip(*rows, strict=True))
    # (pairs,): directions have length 1, so their products add up to the cosine.
    cosines = (space.directions[first] * space.directions[second]).sum(1)
    return SimilarityScore(spearman(cosines, scores), len(rows), len(judgements))


def read_analogies(path: Path) -> dict[str, list[list[str]]]:
    """Read analogies by section: lines of four words a b c d, such that a is to b as c is to d, below ": section"."""
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
                f"{path}, line {number}: {counted(len(fields), 'words')}, but an analogy has four; correct the line"
            )
    if not sections:
        raise InputError(f"{path}: has no analogies, which are lines of four words; give another file")
    return sections


def analogy_scores(
    space: VectorSpace, sections: dict[str, list[list[str]]], among: int | None = None
) -> Iterator[AnalogyScore]:
    """Yield the score of each section of analogies from `read_analogies`.

    Only the first `among` words, by default all, are possible answers; questions with other words are not covered.
    """
    limit = len(space.words) if among is None else among
    for name, questions in sections.items():
        rows = [[space.find(word) for word in question] for question in questions]
        rows = [row for row in rows if all(index is not None and index < limit for index in row)]
        covered = np.array(rows, np.int64).reshape(-1, 4)
        right = int((space.solve(covered[:, :3], among) == covered[:, 3]).sum())
        yield AnalogyScore(name, right, len(covered), len(questions))
