"""Precision, recall and F1 from three counts."""

from typing import NamedTuple


class F1Counts(NamedTuple):
    """What was to be found, what was found, and how much of that is right.

    Precision P = correct / predicted, recall R = correct / expected, F1 = 2PR / (P + R) (van Rijsbergen 1979, chapter
    7). Each lies from 0 to 1 and is 0 where its denominator is.
    """

    correct: int
    predicted: int
    expected: int

    @property
    def precision(self) -> float:
        """Share of what was predicted that is right."""
        return self.correct / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        """Share of what is right that was predicted."""
        return self.correct / max(self.expected, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.correct / max(self.predicted + self.expected, 1)
