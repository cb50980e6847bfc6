"""Correlations equal their definitions."""

import math

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.metrics.correlation import pearson, ranks, spearman


def by_definition(x, y):
    a, b = sum(x) / len(x), sum(y) / len(y)
    above = math.fsum((p - a) * (q - b) for p, q in zip(x, y, strict=True))
    return above / math.sqrt(math.fsum((p - a) ** 2 for p in x) * math.fsum((q - b) ** 2 for q in y))


def rank_by_definition(values):
    """The mean place that a value takes over all orders of its equals."""
    return [sum(v < x for v in values) + (1 + sum(v == x for v in values)) / 2 for x in values]


def drawn(seed, count, levels):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, count).astype(float)
    return x.tolist(), (x + rng.normal(0, levels / 3, count)).tolist()


@pytest.mark.parametrize(("count", "levels"), [(5, 23), (13, 3), (101, 7)])
def test_both_equal_their_definitions_with_and_without_ties(count, levels):
    x, y = drawn(count, count, levels)
    assert pearson(x, y) == pytest.approx(by_definition(x, y), abs=1e-13)
    assert ranks(x).tolist() == rank_by_definition(x)
    assert spearman(x, y) == pytest.approx(by_definition(rank_by_definition(x), rank_by_definition(y)), abs=1e-13)


def test_anscombes_first_two_sets_correlate_alike():  # Anscombe 1973: r = 0.816 in all
    x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    for y in (
        [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68],
        [9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74],
    ):
        assert pearson(x, y) == pytest.approx(0.816, abs=5e-4)


def test_what_does_not_change_order_does_not_change_rank_correlation():
    x, y = drawn(3, 17, 29)
    assert spearman(x, np.exp(np.array(y) / 7)) == pytest.approx(spearman(x, y))
    assert spearman(x, [-value for value in y]) == pytest.approx(-spearman(x, y))


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
def test_size_and_place_of_the_numbers_do_not_matter(scale):
    x, y = drawn(3, 17, 29)
    assert pearson([scale * value for value in x], y) == pytest.approx(pearson(x, y), rel=1e-9)
    assert pearson([1e6 + value for value in x], y) == pytest.approx(pearson(x, y), rel=1e-9)


@pytest.mark.parametrize("score", [pearson, spearman])
def test_a_constant_has_no_correlation(score):
    assert math.isnan(score([1, 2, 3], [5, 5, 5]))
    assert math.isnan(score([0, 0], [1, 2]))
    assert score([1, 2], [3, 5]) == pytest.approx(1.0)


@pytest.mark.parametrize("score", [pearson, spearman])
@pytest.mark.parametrize(
    ("x", "y", "problem"),
    [([1], [1], "at least two"), ([1, 2], [1, 2, 3], "2 predictions and 3 scores"), ([1, math.nan], [1, 2], "finite")],
)
def test_numbers_that_do_not_fit_are_refused(score, x, y, problem):
    with pytest.raises(InputError, match=problem):
        score(x, y)
