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
from heedful.data.word_vectors.vector_space import VectorSpace
from heedful.errors import InputError
from heedful.evaluate.correlation import spearman
from heedful.wording import counted

SECTION = ":"  # begins the line that names a section of analogies
COMMENT = "#"


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
    rows = ((number, cells(line)) for number, line in lines if line.strip() and not line.startswith(COMMENT))
    first = list(islice(rows, 2))
    places = (place for _, fields in first for place in places_of_numbers(fields))
    column = min(places, default=2)
    if first and len(first[0][1]) > 2 and judgement(first[0][1], column) is None:  # names of columns
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
    separator = next((found for found in "\t," if found in line), None)
    return [cell.strip() for cell in line.split(separator)]


def places_of_numbers(fields: Sequence[str]) -> list[int]:
    """List the columns after the two words that hold a number."""
    return [place for place in range(2, len(fields)) if judgement(fields, place) is not None]


def judgement(fields: Sequence[str], column: int) -> float | None:
    """Read the judgement in a column of a line; None for what is no finite number."""
    try:
        value = float(fields[column])
    except (ValueError, IndexError):
        return None
    return value if isfinite(value) else None


def similarity_score(space: VectorSpace, judgements: Judgements) -> SimilarityScore:
    """Correlate the cosines of pairs of words with human judgements, by rank (Spearman)."""
    found = [
        (first, second, score)
        for (a, b), score in zip(judgements.pairs, judgements.scores, strict=True)
        if (first := space.find(a)) is not None and (second := space.find(b)) is not None
    ]
    if len(found) < 2:
        return SimilarityScore(float("nan"), len(found), len(judgements.pairs))
    first, second, scores = map(np.array, zip(*found, strict=True))
    cosines = (space.directions[first] * space.directions[second]).sum(1)
    return SimilarityScore(spearman(cosines, scores), len(found), len(judgements.pairs))


def read_analogies(path: Path) -> dict[str, list[list[str]]]:
    """Read analogies by section: lines of four words "a b c d", a to b as c to d, below lines ": section".

    Raises:
        InputError: The file cannot be read, a line has not four words, or there is none.
    """
    sections: dict[str, list[list[str]]] = {}
    name = ""
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split()
        if line.startswith(SECTION):
            name = line.removeprefix(SECTION).strip()
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
    """Yield the score of each section of analogies.

    Args:
        space: The word vectors.
        sections: Questions as by `read_analogies`.
        among: Answers come from so many first words, and questions with other words do not count; None: all.
    """
    limit = len(space.words) if among is None else among
    for name, questions in sections.items():
        rows = [[space.find(word) for word in question] for question in questions]
        known = np.array([row for row in rows if all(place is not None and place < limit for place in row)], np.int64)
        known = known.reshape(-1, 4)
        right = int((space.solve(known[:, :3], among) == known[:, 3]).sum())
        yield AnalogyScore(name, right, len(known), len(questions))
