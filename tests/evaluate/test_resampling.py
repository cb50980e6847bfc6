"""The bootstrap repeats by seed and covers as often as it says."""

import math

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.evaluate.resampling import bootstrap_interval

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
