"""The p-values keep their level with every metric: equally good systems rarely differ, and unequal ones do."""

import pytest
from scipy.stats import binom
from significance_level import KINDS, rejections

PAIRS = 300


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equally_good_systems_differ_as_rarely_as_the_level_says(kind):
    for name, rejected in rejections(kind, PAIRS, samples=99).items():
        assert rejected <= binom.ppf(0.99, PAIRS, 0.05), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_system_with_three_times_the_errors_is_worse_by_more_than_chance(kind):
    for name, rejected in rejections(kind, 20, samples=99, rates=(0.75, 0.25)).items():
        assert rejected >= 16, name
