"""Scores of rankings equal their definitions."""

import math

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.metrics.retrieval import hit_rate_at, mean_reciprocal_rank, ndcg_at, ranked, recall_at


def drawn(queries, longest):
    rng = np.random.default_rng(queries)
    rankings = [rng.integers(0, 4, rng.integers(2, longest)).astype(float) for _ in range(queries)]
    for gains in rankings:
        gains[-1] = 3
    return rankings


def dcg(gains, k):
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1) if place <= k)


@pytest.mark.parametrize("k", [1, 3, 7, 101])
def test_figures_equal_their_definitions(k):
    rankings = [gains.tolist() for gains in drawn(11, 13)]
    found = [sum(gain > 0 for gain in gains[:k]) / sum(gain > 0 for gain in gains) for gains in rankings]
    assert recall_at(rankings, k) == pytest.approx(sum(found) / 11)
    assert hit_rate_at(rankings, k) == pytest.approx(sum(share > 0 for share in found) / 11)
    first = [next(place for place, gain in enumerate(gains, start=1) if gain > 0) for gains in rankings]
    assert mean_reciprocal_rank(rankings) == pytest.approx(sum(1 / place for place in first) / 11)
    best = [dcg(gains, k) / dcg(sorted(gains, reverse=True), k) for gains in rankings]
    assert ndcg_at(rankings, k) == pytest.approx(sum(best) / 11)


def test_a_ranking_that_is_summed_by_hand():
    gains = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]  # those of Järvelin & Kekäläinen 2002
    total = 3 + 2 / math.log2(3) + 3 / 2 + 1 / math.log2(7) + 2 / 3 + 2 / math.log2(9) + 3 / math.log2(10)
    assert ndcg_at([gains], 10) == pytest.approx(total / dcg([3, 3, 3, 2, 2, 2, 1], 10))


def test_the_best_ranking_has_one_and_the_first_place_counts_most():
    assert [recall_at([[1, 1, 0]], 2), mean_reciprocal_rank([[1, 0]]), ndcg_at([[3, 1, 0]], 3)] == [1.0] * 3
    assert mean_reciprocal_rank([[0, 0, 1], [0, 1]]) == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_scores_become_a_ranking_and_ties_earn_nothing():
    assert ranked([0.1, 0.7, 0.3], [2, 0, 1]).tolist() == [0, 1, 2]
    assert ranked([5, 5, 5, 7], [1, 0, 2, 0]).tolist() == [0, 0, 1, 2]
    assert mean_reciprocal_rank([ranked([0] * 7, [1, *[0] * 6])]) == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    "score", [lambda r: recall_at(r, 3), lambda r: hit_rate_at(r, 3), mean_reciprocal_rank, lambda r: ndcg_at(r, 3)]
)
@pytest.mark.parametrize(
    ("rankings", "problem"),
    [([], "0 rankings"), ([[1], [0, 0]], "query 2"), ([[1, -1]], "query 1"), ([[]], "query 1"), ([[1, math.nan]], "1")],
)
def test_queries_that_cannot_be_scored_are_refused(score, rankings, problem):
    with pytest.raises(InputError, match=problem):
        score(rankings)


@pytest.mark.parametrize("score", [recall_at, ndcg_at])
def test_some_places_must_count(score):
    with pytest.raises(InputError, match="1 rankings, k = 0: both"):
        score([[1]], 0)


@pytest.mark.parametrize(("scores", "gains"), [([1, 2], [1]), ([math.nan, 1], [1, 0]), ([[1]], [[1]])])
def test_scores_that_do_not_fit_are_refused(scores, gains):
    with pytest.raises(InputError, match="each needs one"):
        ranked(scores, gains)
