"""Precision, recall and F1 from the counts of correct, predicted and expected items."""

from typing import NamedTuple


class F1Counts(NamedTuple):
    """Counts of correct, predicted and expected items, with their precision, recall and F1.

    Precision P = correct / predicted, recall R = correct / expected, F1 = 2PR / (P + R) (van Rijsbergen 1979, chapter
    7). Each lies from 0 to 1, and is 0 if its denominator is 0.
    """

    correct: int
    predicted: int
    expected: int

    @property
    def precision(self) -> float:
        """Precision: the share of predicted items that are correct."""
        return self.correct / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        """Recall: the share of expected items that were predicted."""
        return self.correct / max(self.expected, 1)

    @property
    def f1(self) -> float:
        """F1: the harmonic mean of precision and recall."""
        return 2 * self.correct / max(self.predicted + self.expected, 1)
