"""Resampling: tones stay tones, what the new rate cannot hold is gone, and a plain sum over all samples agrees."""

import math

import numpy as np
import pytest

from heedful.media.audio import CROSSINGS, OUTPUTS, ROLLOFF, resampled

RATES = [(16_000, 8000), (8000, 16_000), (44_100, 16_000), (48_000, 16_000), (11_025, 16_000), (7, 5), (8003, 16_001)]


def tone(frequency: float, rate: int, count: int) -> np.ndarray:
    return np.sin(2 * np.pi * frequency * np.arange(count) / rate).astype(np.float32)


def plainly_resampled(samples: np.ndarray, before: int, after: int) -> np.ndarray:
    """The sum over all samples that the module computes group by group, in float64."""
    width = min(1.0, after / before) * ROLLOFF
    found = []
    for output in range(math.ceil(len(samples) * after / before)):
        distance = (np.arange(len(samples)) - output * before / after) * width
        window = np.cos(distance * np.pi / 2 / CROSSINGS) ** 2 * (np.abs(distance) <= CROSSINGS)
        found.append(np.sum(samples * width * np.sinc(distance) * window))
    return np.array(found)


@pytest.mark.parametrize(("before", "after"), RATES)
@pytest.mark.parametrize("count", [1, 2, 131])
def test_it_equals_a_plain_sum_over_all_samples(before, after, count):
    samples = np.random.default_rng(1).normal(size=count).astype(np.float32)
    np.testing.assert_allclose(resampled(samples, before, after), plainly_resampled(samples, before, after), atol=2e-6)


@pytest.mark.parametrize(("before", "after"), RATES[:5])
def test_a_tone_stays_a_tone(before, after):
    found = resampled(tone(700, before, before), before, after)
    assert len(found) == after
    assert np.abs(found - tone(700, after, after))[500:-500].max() < 1e-3


def test_a_tone_that_the_new_rate_cannot_hold_is_gone():
    assert np.abs(resampled(tone(5000, 16_000, 16_000), 16_000, 8000)[500:-500]).max() < 2e-3


def test_a_long_clip_is_resampled_in_parts_without_a_seam():
    before, after = 16_000, 8000
    count = 4 * OUTPUTS + 777
    whole = resampled(tone(300, before, count), before, after)
    assert np.abs(whole - tone(300, after, len(whole)))[100:-100].max() < 1e-3


def test_at_equal_rates_nothing_changes():
    samples = tone(440, 8000, 99)
    assert resampled(samples, 8000, 8000) is samples
