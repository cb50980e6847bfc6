"""Intervals and p-values are those of `heedful evaluate`, for texts and for other examples."""

import numpy as np
import pytest

from heedful.metrics import Scoring, paired_bootstrap, score
from heedful.metrics.bootstrap import bootstrap_scores, compare_scores, mean_scores
from heedful.tools.compare.job import TestResult
from heedful.tools.compare.statistics import BootstrapSample, ScoredTexts, Translations, sample_of

RIGHT = tuple(" ".join(f"w{(3 * i + j) % 11}" for j in range(4 + i % 3)) for i in range(41))
WORSE = tuple(text if i % 3 else text[::-1] for i, text in enumerate(RIGHT))


def test_translations_are_compared_as_evaluate_does():
    a, b = Translations(RIGHT, RIGHT, "en"), Translations(WORSE, RIGHT, "en")
    settings = Scoring(metrics=("bleu", "chrf"), language="en")
    assert b.against(a) == paired_bootstrap(RIGHT, WORSE, [RIGHT], settings)
    assert b.intervals() == {found.name: found.system for found in b.against(a)}
    assert [found.value for found in b.intervals().values()] == [
        found.value for found in score(WORSE, [RIGHT], settings)
    ]


def test_the_outputs_of_an_untrained_system_have_an_interval_of_nothing():
    found = Translations(("",) * 41, RIGHT, "en").intervals()
    assert [(one.value, one.interval) for one in found.values()] == [(0.0, 0.0), (0.0, 0.0)]


def test_examples_are_compared_as_evaluate_does():
    rng = np.random.default_rng(3)
    a, b = ({"accuracy": (rng.random(53) < share).astype(float).tolist()} for share in (0.4, 0.7))
    wanted = compare_scores(mean_scores(a), mean_scores(b))
    assert ScoredTexts(b).against(ScoredTexts(a)) == wanted
    drawn = [BootstrapSample(bootstrap_scores(mean_scores(figures))) for figures in (a, b)]
    assert drawn[1].against(drawn[0]) == wanted


def test_each_text_has_a_score_of_its_own():
    each = Translations(WORSE, RIGHT, "en").each()
    assert max(each) == pytest.approx(100)
    assert each[0] < 50
    part = ScoredTexts({"exact_match": [0.0, 1.0, 1.0]}).part([0, 2])
    assert part.each() == [0.0, 1.0]


def test_running_text_is_no_sample():
    assert sample_of(TestResult(count=3, scores={"perplexity": 2.0}, seconds=1.0, tokens=7)) is None


def test_of_one_example_nothing_can_be_told():
    texts = Translations(RIGHT[:1], RIGHT[:1], "en").against(Translations(("other words here",), RIGHT[:1], "en"))
    scores = ScoredTexts({"exact": [1.0]}).against(ScoredTexts({"exact": [0.0]}))
    assert [found.p_value for found in (*texts, *scores)] == [1.0] * 3


def test_scores_that_one_of_two_lacks_are_left_out():
    both = ScoredTexts({"a": [1.0, 0.0], "b": [0.0, 1.0]}).against(ScoredTexts({"b": [1.0, 1.0]}))
    assert [found.name for found in both] == ["b"]
