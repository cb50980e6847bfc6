"""The bootstrap repeats by seed and covers as often as it says."""

import math

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.metrics.bootstrap import (
    Comparison,
    ExampleScores,
    ScoreInterval,
    bootstrap_interval,
    compare_scores,
    mean_scores,
)

SCORES = np.random.default_rng(5).random(97)


def mean(chosen):
    return float(SCORES[chosen].mean())


def test_the_interval_of_a_mean_is_that_of_the_central_limit():
    found = bootstrap_interval(mean, 97, samples=2003)
    error = SCORES.std() / math.sqrt(97)
    assert found.value == mean(np.arange(97))
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.15 * error)


def test_a_lower_level_has_a_narrower_interval_within():
    wide, narrow = (bootstrap_interval(mean, 97, samples=499, level=level) for level in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_every_draw_is_a_whole_test_set_with_repeats():
    draws = []
    bootstrap_interval(lambda chosen: draws.append(chosen) or 0.0, 53, samples=31)
    *resamples, whole = draws
    assert whole.tolist() == list(range(53))
    assert len(resamples) == 31
    assert {chosen.shape for chosen in resamples} == {(53,)}
    assert {int(i) for chosen in resamples for i in chosen} == set(range(53))
    assert all(len(set(chosen.tolist())) < 53 for chosen in resamples)


def test_draws_depend_on_the_seed_alone():
    assert bootstrap_interval(mean, 97, samples=101, seed=3) == bootstrap_interval(mean, 97, samples=101, seed=3)
    assert bootstrap_interval(mean, 97, samples=101, seed=3) != bootstrap_interval(mean, 97, samples=101, seed=5)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 7, "samples": 0}, {"count": 7, "level": 1.0}])
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(InputError, match="a bootstrap needs"):
        bootstrap_interval(mean, **wrong)


def right(share, seed, count=401):
    """Which of so many examples a system that is right in this share of cases gets right."""
    return (np.random.default_rng(seed).random(count) < share).astype(float)


def test_a_large_difference_is_more_than_chance_and_a_small_one_may_be():
    baseline = mean_scores({"accuracy": right(0.6, seed=1)})
    [better], [similar] = (
        compare_scores(baseline, mean_scores({"accuracy": right(share, seed=2)})) for share in (0.8, 0.61)
    )
    assert (better.is_better, better.is_significant) == (True, True)
    assert better.p_value < 0.01
    assert not similar.is_significant


def test_the_p_value_is_that_of_the_normal_approximation():
    ours, theirs = right(0.66, seed=1), right(0.6, seed=2)
    [found] = compare_scores(mean_scores({"x": theirs}), mean_scores({"x": ours}), samples=2003)
    z = (ours - theirs).mean() / ((ours - theirs).std() / math.sqrt(len(ours)))
    assert found.p_value == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), abs=0.03)
    assert (found.system.value, found.baseline.value) == (ours.mean(), theirs.mean())
    assert found.system.interval == pytest.approx(1.96 * ours.std() / math.sqrt(len(ours)), rel=0.1)


def test_by_chance_alone_a_difference_is_rarely_called_more():
    called = [
        compare_scores(
            mean_scores({"x": right(0.7, seed=seed)}), mean_scores({"x": right(0.7, seed=seed + 1000)}), samples=199
        )[0].is_significant
        for seed in range(200)
    ]
    assert sum(called) / len(called) == pytest.approx(0.05, abs=0.04)


def test_scores_of_a_whole_set_are_made_anew_of_each_resample():
    counts = np.array([[1, 2, 1], [0, 1, 1], [2, 2, 3], [1, 1, 1]])
    outcomes = ExampleScores(4, lambda chosen: {"f1": 2 * counts[chosen, 0].sum() / counts[chosen, 1:].sum()})
    [found] = compare_scores(outcomes, outcomes)
    assert outcomes.scores == {"f1": 2 * 4 / 12}
    assert found.p_value == 1.0
    assert found.baseline == found.system
    assert found.baseline.interval > 0


def test_both_systems_meet_the_same_resamples():
    draws = []
    for _ in range(2):
        seen: list[list[int]] = []
        watched = ExampleScores(7, lambda chosen, seen=seen: seen.append(chosen.tolist()) or {"x": 0.0})
        compare_scores(watched, mean_scores({"x": np.zeros(7)}), samples=11)
        draws.append(seen)
    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws[0]}) == 12  # the whole set, too


def test_two_examples_of_a_rare_kind_are_chance_under_every_score():
    expected = np.array([0] * 28 + [1] * 2)
    blind = np.zeros(30, int)

    def outcomes(predicted):
        def measure(chosen):
            ours, theirs = predicted[chosen], expected[chosen]
            recall = (ours & theirs).sum() / max(theirs.sum(), 1)
            return {"accuracy": (ours == theirs).mean(), "recall": float(recall)}

        return ExampleScores(30, measure)

    for found in compare_scores(outcomes(blind), outcomes(expected)):
        assert found.is_better
        assert not found.is_significant


def test_the_interval_of_a_difference_is_that_of_the_paired_differences():
    easy = np.random.default_rng(3).normal(size=200)
    [found] = compare_scores(mean_scores({"x": easy}), mean_scores({"x": easy + 0.25}))
    assert found.difference.value == pytest.approx(0.25)
    assert found.difference.interval == pytest.approx(0, abs=1e-12)
    assert found.system.interval > 0.1


def test_of_errors_the_lower_score_is_better():
    low, high, less = ScoreInterval(1.0, 1.0, 0.1), ScoreInterval(2.0, 2.0, 0.1), ScoreInterval(-1.0, -1.0, 0.1)
    assert Comparison("TER", high, low, less, 0.01, lower_is_better=True).is_better
    assert not Comparison("BLEU", high, low, less, 0.01).is_better


def test_what_cannot_be_compared_is_refused():
    seven, five = mean_scores({"x": np.ones(7)}), mean_scores({"x": np.ones(5)})
    with pytest.raises(InputError, match="7 examples of the baseline, 5 of the system"):
        compare_scores(seven, five)
    with pytest.raises(InputError, match="0 samples"):
        compare_scores(seven, seven, samples=0)
