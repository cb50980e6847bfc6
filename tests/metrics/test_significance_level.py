"""The p-values keep their level with every metric: equally good systems rarely differ, and unequal ones do."""

import numpy as np
import pytest
from scipy.stats import binom
from significance_level import KINDS, POOL, Systems, part, rejections, texts

from heedful.metrics import METRICS, paired_bootstrap
from heedful.metrics.bootstrap import compare_scores
from heedful.metrics.translation import Scoring
from heedful.tasks.specs import SPECS

SAMPLES = 49  # with which p < 0.05 in 4 % of all null pairs
PAIRS = {"translation": 200, "compare, translations": 200, "compare, texts": 40}  # of the others 100

# Examples on which rates of errors of 0.35 and 0.25 are found to differ in more than 99 % of all trials. Of 2 classes a
# random choice is right half the time, so that accuracies are 0.825 and 0.875, which are 5.5 standard errors apart with
# 3,000 examples. Precision of spans is 0.8125 and 0.8333: 4.8 with 10,000.
EXAMPLES = {
    "translation": 200,
    "texts": 500,
    "answers": 500,
    "recognition": 100,
    "2 classes": 3000,
    "5 classes": 3000,
    "regression": 500,
    "tagging": 10_000,
    "pictures and texts": 500,
    "passages": 500,
}

# Scores that nothing compares by p-values: of losses, or of a test set as a whole.
WHOLE = {"loss", "perplexity", "byte_perplexity", "rmse", "distinct_1", "distinct_2"} | {
    f"next_sentence_{name}" for name in ("loss", "accuracy")
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equally_good_systems_differ_as_rarely_as_the_level_says(kind):
    pairs = PAIRS.get(kind, 100)
    for name, rejected in rejections(kind, pairs, SAMPLES).items():
        assert rejected <= binom.ppf(0.99, pairs, 0.05), name


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_modest_difference_is_found_by_every_metric(kind, seed):
    count = EXAMPLES[kind.removeprefix("compare, ").replace("translations", "translation")]
    results = KINDS[kind].results(Systems(seed, (0.35, 0.25), count))
    rows = np.arange(count)
    found = KINDS[kind].compare(part(results, rows), part(results, rows + count), 99)
    assert [one.name for one in found if not one.is_significant] == []
    assert found


def test_translations_are_compared_by_the_test_whose_level_is_measured():
    outputs, references = texts(Systems())
    results, rows = KINDS["translation"].results(Systems()), np.arange(POOL)
    halves = outputs[:POOL], outputs[POOL:], [references[:POOL]]
    ours = paired_bootstrap(*halves, Scoring(metrics=METRICS), SAMPLES)
    measured = compare_scores(part(results, rows), part(results, rows + POOL), SAMPLES)
    assert [(one.name, one.p_value) for one in ours] == [(one.name, one.p_value) for one in measured]


def test_the_level_of_every_score_of_a_task_is_measured():
    systems = Systems(examples=10)
    measured = {name for kind in KINDS.values() for name in kind.results(systems).scores}
    scores = {name for task in SPECS.values() for name in task.metrics}
    assert scores - measured - WHOLE == {"bleu"}  # which is called BLEU where it is compared
