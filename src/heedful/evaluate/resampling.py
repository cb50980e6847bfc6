"""How far a score would move on another test set of the same kind: the bootstrap (Efron & Tibshirani 1993)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heedful.errors import InputError


class Interval(NamedTuple):
    """A score on the test set itself, and between which values it lies in most resamples."""

    value: float
    low: float
    high: float


def bootstrap_interval(
    score: Callable[[np.ndarray], float], count: int, samples: int = 1000, level: float = 0.95, seed: int = 1
) -> Interval:
    """Return a score with its percentile interval (Efron & Tibshirani 1993, chapter 13).

    The draws depend on (count, samples, seed) alone, so that two systems are scored on the same resamples.

    Args:
        score: Gives the score of the examples with these numbers, int64, shape (count,): for a mean
            `lambda chosen: scores[chosen].mean()`, and for a figure of the whole set its own computation.
        count: Examples in the test set.
        samples: Test sets to draw, each of `count` examples with replacement.
        level: Share of the resamples whose score lies in the interval.
        seed: Decides the draws.

    Raises:
        InputError: There are no examples, no samples, or the level does not lie between 0 and 1.
    """
    if count < 1 or samples < 1 or not 0 < level < 1:
        raise InputError(
            f"{count} examples, {samples} samples, level {level}: a bootstrap needs 1, 1, and 0 < level < 1"
        )
    values = [score(_draw(count, sample, seed)) for sample in range(samples)]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(score(np.arange(count))), float(low), float(high))


def _draw(count: int, sample: int, seed: int) -> np.ndarray:
    raw = np.random.Philox(np.random.SeedSequence((seed, sample))).random_raw(count)
    return (raw % np.uint64(count)).astype(np.int64)
