"""Retrieval metrics: recall at k, mean reciprocal rank and nDCG, each a mean over queries, from 0 to 1.

A ranking consists of the gains of a query's candidates, highest rank first: 0 for irrelevant ones, 1 for relevant ones,
or grades. `ranked` creates it from scores. Rankings of different queries may differ in length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from heedful.errors import InputError
from heedful.metrics.metric import Metric, Outputs, per_example

Ranking = np.ndarray | Sequence[float]


def ranked(scores: Ranking, gains: Ranking) -> np.ndarray:
    """Return the gains of n candidates in descending order of score, float64, shape (n,).

    Among equal scores, the smallest gain comes first, so that a model that scores all candidates equally gains nothing.
    """
    scores, gains = np.asarray(scores, np.float64), np.asarray(gains, np.float64)
    if scores.shape != gains.shape or scores.ndim != 1 or not np.isfinite([scores, gains]).all():
        raise InputError(f"{scores.size} scores for {gains.size} candidates: each needs one finite score")
    # `lexsort` sorts by its last key first: by descending scores, and equal scores by ascending gains.
    return gains[np.lexsort((gains, -scores))]


def recall_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return recall at k, the share of a query's relevant candidates that are ranked among the first k.

    See Manning et al. (2008), section 8.4.
    """
    return float(np.mean([(gains[:k] > 0).sum() / (gains > 0).sum() for gains in _checked(rankings, k)]))


def hit_rate_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return the share of queries with at least one relevant candidate among their first k.

    Papers on image-text retrieval call this recall at k (Karpathy & Fei-Fei 2015, section 4.1).
    """
    return float(np.mean([(gains[:k] > 0).any() for gains in _checked(rankings, k)]))


def mean_reciprocal_rank(rankings: Sequence[Ranking]) -> float:
    """Return the mean reciprocal rank (MRR): 1 / the rank of a query's first relevant candidate (Voorhees 1999)."""
    return float(np.mean([1 / (1 + np.argmax(gains > 0)) for gains in _checked(rankings, 1)]))


def ndcg_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return nDCG at k: discounted cumulative gain divided by its maximum over all orders (Järvelin & Kekäläinen 2002).

    DCG@k = sum over ranks i = 1 ... k of gain_i / log2(i + 1). This discount is the usual one; the paper's leaves the
    first two ranks undiscounted. The gain is the paper's, not 2^gain - 1 (Burges et al. 2005).
    """
    return float(np.mean([_dcg(gains[:k]) / _dcg(np.sort(gains)[::-1][:k]) for gains in _checked(rankings, k)]))


def _dcg(gains: np.ndarray) -> float:
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def _checked(rankings: Sequence[Ranking], k: int) -> list[np.ndarray]:
    if not len(rankings) or k < 1:
        raise InputError(f"{len(rankings)} rankings, k = {k}: both numbers must be at least 1")
    arrays = [np.asarray(gains, np.float64) for gains in rankings]
    for number, gains in enumerate(arrays, start=1):
        if not (gains > 0).any() or not (gains >= 0).all():
            raise InputError(f"query {number}: no candidate is relevant, or a gain is negative; leave the query out")
    return arrays


@dataclass(frozen=True)
class Rankings(Outputs):
    """Rankings of the candidates of each query, stored as the ranks, from 0, of the relevant candidates.

    Attributes:
        places: For each query, the ranks of its relevant candidates, in ascending order.
        candidates: The number of candidates, which is the same for every query.
    """

    kind = "rankings"
    columns = ("places",)

    places: Sequence[np.ndarray]
    candidates: int

    @classmethod
    def of(cls, rankings: Iterable[np.ndarray], candidates: int) -> "Rankings":
        """Create rankings from the gains of each query: 0 or 1 for every candidate, in the order of the ranking."""
        return cls([np.flatnonzero(gains) for gains in rankings], candidates)

    def scored(self, measure: Callable[[Sequence[Ranking]], float]) -> list[float]:
        """Score the ranking of each query."""
        scores = []
        for ranks in self.places:
            gains = np.zeros(self.candidates)
            gains[ranks] = 1
            scores.append(measure([gains]))
        return scores


@dataclass(frozen=True)
class Matches(Outputs):
    """Rankings for N images with their texts: of all texts for each image, and of all images for each text.

    Attributes:
        text: Rankings of texts for the distinct images.
        image: Rankings of images for the distinct texts.
        images: The index of each example's image among the distinct images, (N,).
        texts: The index of each example's text among the distinct texts, (N,).
    """

    kind = "matches"
    columns = ("images", "texts")

    text: Rankings
    image: Rankings
    images: np.ndarray
    texts: np.ndarray

    def groups(self) -> np.ndarray:
        """Return the group index of each example, (N,).

        Examples that share an image or a text are in one group, because their results are not independent.
        """
        return connected(self.images, self.texts)

    def scored(self, side: Literal["text", "image"], measure: Callable[[Sequence[Ranking]], float]) -> np.ndarray:
        """Score the ranking of each example, of texts or of images, (N,)."""
        # (distinct images or texts,) -> (N,): each is scored once, and all its examples share the score.
        rankings, numbers = (self.text, self.images) if side == "text" else (self.image, self.texts)
        return np.array(rankings.scored(measure))[numbers]


def connected(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the group index of each of N pairs, (N,): pairs that share a side are in the same group.

    `first` and `second`, each (N,), have equal numbers for equal sides. Groups are numbered in the order of their first
    pair.
    """
    # Each pair takes the lowest group of its sides, until nothing changes.
    groups = np.arange(len(first))
    while True:
        before = groups
        for sides in (first, second):
            lowest = np.full(sides.max() + 1, len(groups))
            np.minimum.at(lowest, sides, groups)
            groups = lowest[sides]
        if (groups == before).all():
            return np.unique(groups, return_inverse=True)[1]


def _of_side(side: Literal["text", "image"], measure: Callable[[Sequence[Ranking]], float]) -> Metric:
    return per_example(lambda matches: matches.scored(side, measure))


def mean_of_both_ranks(matches: Matches) -> np.ndarray:
    """Return the mean of the reciprocal ranks of each example's text and image, (N,)."""
    return (matches.scored("text", mean_reciprocal_rank) + matches.scored("image", mean_reciprocal_rank)) / 2


MRR = per_example(lambda rankings: rankings.scored(mean_reciprocal_rank))
RECALL_1 = per_example(lambda rankings: rankings.scored(partial(recall_at, k=1)))
RECALL_10 = per_example(lambda rankings: rankings.scored(partial(recall_at, k=10)))
NDCG_10 = per_example(lambda rankings: rankings.scored(partial(ndcg_at, k=10)))
MATCH_MRR = per_example(mean_of_both_ranks)
TEXT_MRR, IMAGE_MRR = (_of_side(side, mean_reciprocal_rank) for side in ("text", "image"))
TEXT_RECALL_1, TEXT_RECALL_5, TEXT_RECALL_10 = (_of_side("text", partial(hit_rate_at, k=k)) for k in (1, 5, 10))
IMAGE_RECALL_1, IMAGE_RECALL_5, IMAGE_RECALL_10 = (_of_side("image", partial(hit_rate_at, k=k)) for k in (1, 5, 10))
