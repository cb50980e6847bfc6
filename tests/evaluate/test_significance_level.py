"""The p-values keep their level with every metric: equally good systems rarely differ, and unequal ones do."""

import pytest
from scipy.stats import binom
from significance_level import KINDS, Systems, rejections

PAIRS = {"translation": 300, "compare, translations": 300}  # whose p-values were too small; of the others 100
TRIALS = 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equally_good_systems_differ_as_rarely_as_the_level_says(kind):
    pairs = PAIRS.get(kind, 100)
    for name, rejected in rejections(kind, pairs, samples=99).items():
        assert rejected <= binom.ppf(0.99, pairs, 0.05), name


# Examples on which rates of errors of 0.35 and 0.25 are found to differ in more than 99 % of all trials. Of texts each
# of 12 words counts. Of 2 classes a random choice is right half the time, so that accuracies are 0.825 and 0.875, which
# are 5.5 standard errors apart with 3,000 examples. Precision of spans is 0.8125 and 0.8333: 4.8 with 10,000.
EXAMPLES = {
    "translation": 200,
    "compare, translations": 100,
    "compare, texts": 100,
    "recognition": 100,
    "2 classes": 3000,
    "5 classes": 3000,
    "regression": 500,
    "tagging": 10_000,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_modest_difference_is_found_by_every_metric(kind):
    found = rejections(kind, TRIALS, samples=99, like=Systems(0, (0.35, 0.25), EXAMPLES[kind]))
    assert {name: count for name, count in found.items() if count < TRIALS - 1} == {}
    assert found
