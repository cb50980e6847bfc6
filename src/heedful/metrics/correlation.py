"""Pearson's and Spearman's correlation coefficients, from -1 to 1; NaN if one row of numbers is constant."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import InputError
from heedful.metrics.metric import Metric, Outputs

Numbers = np.ndarray | Sequence[float]


def pearson(predicted: Numbers, expected: Numbers) -> float:
    """Return Pearson's linear correlation of two rows of N numbers (Pearson 1896); NaN if one row is constant.

    r = sum (x - mean x)(y - mean y) / sqrt(sum (x - mean x)^2 sum (y - mean y)^2)
    """
    x, y = _checked(predicted), _checked(expected)
    if len(x) != len(y) or len(x) < 2:
        raise InputError(
            f"{len(x)} predictions and {len(y)} scores: a correlation needs equal numbers of both, and at least two"
        )
    # Compared exactly: rounding can give a constant row a tiny variance, and its correlation would be random.
    if (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    # Centre, then scale to length 1. Dividing by the largest value first keeps the squares from overflowing.
    x, y = (values - values.mean() for values in (x, y))
    x, y = (values / np.abs(values).max() for values in (x, y))
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1, 1))


def spearman(predicted: Numbers, expected: Numbers) -> float:
    """Return Spearman's rank correlation of two rows of N numbers (Spearman 1904); NaN if one row is constant.

    Equal numbers share the mean of their ranks.
    """
    return pearson(ranks(_checked(predicted)), ranks(_checked(expected)))


def ranks(numbers: Numbers) -> np.ndarray:
    """Return the ranks of N numbers, 1 for the smallest, float64, shape (N,); equal numbers share their mean rank."""
    _, group, sizes = np.unique(np.asarray(numbers, np.float64), return_inverse=True, return_counts=True)
    # `cumsum` is the last rank of each group of equal numbers; their mean is (size - 1) / 2 lower.
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


def _checked(numbers: Numbers) -> np.ndarray:
    values = np.asarray(numbers, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("a correlation needs one row of finite numbers on either side; check them for NaN")
    return values


@dataclass(frozen=True)
class PredictedNumbers(Outputs):
    """Predicted and expected numbers, float64, (N,)."""

    kind = "numbers"
    columns = ("predicted", "expected")

    predicted: np.ndarray
    expected: np.ndarray

    def correlation(self, correlate: Callable[[Numbers, Numbers], float]) -> float:
        """Compute a correlation of the predicted with the expected numbers; 0 if it is undefined."""
        coefficient = correlate(self.predicted, self.expected) if len(self) > 1 else math.nan
        return 0.0 if math.isnan(coefficient) else coefficient


SPEARMAN = Metric(lambda numbers: numbers.correlation(spearman))
PEARSON = Metric(lambda numbers: numbers.correlation(pearson))
