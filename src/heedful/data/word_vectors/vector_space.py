"""Vector space of words: cosine similarities, nearest neighbours and analogies by the offset of two words.

V words, D size of the vectors, Q queries.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.word_vectors.vector_files import VectorTable
from heedful.errors import InputError

Vectors = NDArray[np.float32]
AT_ONCE = 1 << 25  # similarities in memory


class Neighbour(NamedTuple):
    """A word near a query, with the cosine of the angle between the two vectors."""

    word: str
    similarity: float


class VectorSpace:
    """Words with their vectors, to compare by the cosine. A word that is not known as written may be so in lower case.

    Attributes:
        words: the words; those of a trained model are in the order of their frequency.
        matrix: the vector of each word, float32, (V, D).
    """

    def __init__(self, table: VectorTable) -> None:
        self.words = table.words
        self.matrix = table.matrix
        largest = np.abs(table.matrix).max(axis=1, keepdims=True)
        scaled = table.matrix / np.where(largest > 0, largest, 1)  # so that no square is too large or too small
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        self.directions = scaled / np.where(lengths > 0, lengths, 1)
        self._rows = {word: row for row, word in enumerate(table.words)}

    def find(self, word: str) -> int | None:
        """The row of a word, as written or else in lower case; None if it has no vector."""
        return self._rows.get(word, self._rows.get(word.lower()))

    def row(self, word: str) -> int:
        """The row of a word, as written or else in lower case."""
        found = self.find(word)
        if found is None:
            near = get_close_matches(word.lower(), self.words[:50_000], n=3)
            raise InputError(f'"{word}" has no vector' + (f"; did you mean {' or '.join(near)}?" if near else ""))
        return found

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The rows of several words."""
        return np.array([self.row(word) for word in words], np.int64)

    def similarity(self, first: str, second: str) -> float:
        """The cosine of the angle between the vectors of two words."""
        a, b = self.directions[self.rows([first, second])]
        return float(np.clip(a @ b, -1, 1))

    def nearest(self, word: str, count: int = 10) -> list[Neighbour]:
        """The words nearest to a word by the cosine, the nearest first, without the word itself."""
        row = self.row(word)
        return self.nearest_to(self.directions[row], count, [row])

    def analogy(self, a: str, b: str, c: str, count: int = 10, among: int | None = None) -> list[Neighbour]:
        """The words nearest to a - b + c, such as king - man + woman, without the three words (Mikolov et al. 2013c).

        Answers come from the first `among` words; None: from all.
        """
        rows = self.rows([a, b, c])
        plus, minus, other = self.directions[rows]
        return self.nearest_to(plus - minus + other, count, rows, among)

    def nearest_to(
        self,
        vector: Vectors,
        count: int,
        left_out: Sequence[int] | NDArray[np.int64] = (),
        among: int | None = None,
    ) -> list[Neighbour]:
        """The words nearest to a vector by the cosine, of the first `among` or all, without the rows `left_out`."""
        length = float(np.linalg.norm(vector))
        similarities = self.directions[:among] @ (vector / length if length else vector)
        out = {int(row) for row in left_out if row < len(similarities)}
        similarities[list(out)] = -np.inf
        best = np.argsort(-similarities, kind="stable")[: max(0, min(count, len(similarities) - len(out)))]
        return [Neighbour(self.words[row], float(similarities[row])) for row in best]

    def solve(self, questions: NDArray[np.int64], among: int | None = None) -> NDArray[np.int64]:
        """Answer analogies "a is to b as c is to ?" by the word nearest to b - a + c, question words left out.

        Args:
            questions: the rows of a, b and c, (Q, 3).
            among: answers come from so many first words; None: from all.

        Returns:
            The row of each answer, (Q,).
        """
        candidates = self.directions[:among]
        answers = []
        step = max(1, AT_ONCE // len(candidates))
        for begin in range(0, len(questions), step):
            part = questions[begin : begin + step]
            a, b, c = (self.directions[column] for column in part.T)
            similarities = (b - a + c) @ candidates.T
            for column in part.T:
                inside = np.flatnonzero(column < len(candidates))
                similarities[inside, column[inside]] = -np.inf
            answers.append(similarities.argmax(1))
        return np.concatenate([np.zeros(0, np.int64), *answers])
