"""Metrics of retrieval: recall at k, mean reciprocal rank and nDCG, means over queries from 0 to 1.

A ranking is the gains of a query's candidates, the best-placed candidate first: 0 for irrelevant ones, 1 for relevant
ones, or grades. `ranked` makes it from scores. Rankings of different queries may differ in length.
"""

from collections.abc import Sequence

import numpy as np

from heedful.errors import InputError

Ranking = np.ndarray | Sequence[float]


def ranked(scores: Ranking, gains: Ranking) -> np.ndarray:
    """Return the gains of n candidates sorted by falling score, float64, shape (n,).

    Among equal scores the smallest gain comes first: a model that scores all candidates alike earns nothing by luck.

    Raises:
        InputError: The lengths differ, or a number is not finite.
    """
    places, values = np.asarray(scores, np.float64), np.asarray(gains, np.float64)
    if places.shape != values.shape or places.ndim != 1 or not np.isfinite([places, values]).all():
        raise InputError(f"{places.size} scores for {values.size} candidates: each needs one, and a finite one")
    return values[np.lexsort((values, -places))]


def recall_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return recall at k, the share of relevant candidates among a query's first k (Manning et al. 2008, section 8.4).

    Raises:
        InputError: There is no query, one has no relevant candidate, or k is below 1.
    """
    return float(np.mean([(gains[:k] > 0).sum() / (gains > 0).sum() for gains in _checked(rankings, k)]))


def hit_rate_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return the share of queries with a relevant candidate among their first k, however many more they have.

    In papers on image-text retrieval this is called recall at k (Karpathy & Fei-Fei 2015, section 4.1).

    Raises:
        InputError: There is no query, one has no relevant candidate, or k is below 1.
    """
    return float(np.mean([(gains[:k] > 0).any() for gains in _checked(rankings, k)]))


def mean_reciprocal_rank(rankings: Sequence[Ranking]) -> float:
    """Return the mean reciprocal rank (MRR): 1 / the rank of a query's first relevant candidate (Voorhees 1999).

    Raises:
        InputError: There is no query, or one has no relevant candidate.
    """
    return float(np.mean([1 / (1 + np.argmax(gains > 0)) for gains in _checked(rankings, 1)]))


def ndcg_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return nDCG at k: the discounted cumulative gain over that of the best order (Järvelin & Kekäläinen 2002).

    DCG@k = sum over places i = 1 ... k of gain_i / log2(i + 1). The discount is the usual one, which the paper does
    not have for the first two places; the gain is the paper's, not 2^gain - 1 (Burges et al. 2005).

    Raises:
        InputError: There is no query, one has no relevant candidate, a gain is negative, or k is below 1.
    """
    return float(np.mean([_dcg(gains[:k]) / _dcg(np.sort(gains)[::-1][:k]) for gains in _checked(rankings, k)]))


def _dcg(gains: np.ndarray) -> float:
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def _checked(rankings: Sequence[Ranking], k: int) -> list[np.ndarray]:
    if not len(rankings) or k < 1:
        raise InputError(f"{len(rankings)} rankings, of which the first {k} count: both must be 1 or more")
    arrays = [np.asarray(gains, np.float64) for gains in rankings]
    for number, gains in enumerate(arrays, start=1):
        if not (gains > 0).any() or not (gains >= 0).all():
            raise InputError(f"query {number}: no candidate is relevant, or a gain is negative; leave the query out")
    return arrays
