from collections import Counter

import numpy as np
import pytest

from heedful.random_numbers import ORDER, KeyedGenerator, draw, shuffled


def test_numbers_depend_on_the_key_alone():
    assert draw(7, 3, 5).tolist() == draw(11, 3, 5)[:7].tolist() != draw(7, 5, 3).tolist()
    chance, numbers = KeyedGenerator(3, 5), draw(3001, 3, 5)
    assert [chance.integer(1 << 64) for _ in range(3001)] == numbers.tolist()


def test_numbers_are_the_same_on_every_machine():
    assert draw(2, 1, 2).tolist() == [5527141919257688469, 1364028082176693913]


def test_shuffling_keeps_the_items():
    items = np.arange(1009) * 7
    assert sorted(shuffled(items, 3).tolist()) == items.tolist()
    assert shuffled(items, 3).tolist() != shuffled(items, 4).tolist()


def test_coins_and_dice_are_fair():
    chance = KeyedGenerator(7)
    counts = Counter(chance.integer(13) for _ in range(13_000))
    assert sorted(counts) == list(range(13))
    assert all(abs(count - 1000) < 140 for count in counts.values())  # 4.6 standard deviations
    for probability in (0.0, 0.1, 0.5, 1.0):
        happened = sum(chance.bernoulli(probability) for _ in range(10_007))
        assert abs(happened - 10_007 * probability) <= 4.5 * np.sqrt(10_007 * probability * (1 - probability))


def test_heads_are_counted_of_any_number_of_coins():
    chance = KeyedGenerator(11)
    for coins in (0, 1, 7, 63, 64, 65, 128, 201):
        heads = np.array([chance.binomial(coins) for _ in range(1009)])
        assert heads.min() >= 0
        assert heads.max() <= coins
        assert abs(heads.mean() - coins / 2) <= 4.5 * np.sqrt(coins / 4 / 1009)
        assert abs(heads.var() - coins / 4) <= 0.25 * coins / 4


@pytest.mark.parametrize("alpha", [0.1, 0.4, 1.0, 2.0, 4.0])
def test_shares_have_the_mean_and_the_variance_of_the_beta_distribution(alpha):
    chance, count = KeyedGenerator(13), 5003
    shares = np.array([chance.beta(alpha) for _ in range(count)])
    variance = 1 / (4 * (2 * alpha + 1))
    assert shares.min() >= 0
    assert shares.max() <= 1
    assert abs(shares.mean() - 0.5) <= 4.5 * np.sqrt(variance / count)
    assert shares.var() == pytest.approx(variance, rel=0.1)
    thirds = np.quantile(np.random.default_rng(1).beta(alpha, alpha, size=50_021), [0.1, 0.3, 0.7])
    np.testing.assert_allclose(np.quantile(shares, [0.1, 0.3, 0.7]), thirds, atol=0.04)


def test_numbers_between_two_bounds_are_spread_evenly():
    chance = KeyedGenerator(17)
    numbers = np.array([chance.between(-3, 7) for _ in range(5003)])
    np.testing.assert_allclose(np.quantile(numbers, [0.0, 0.25, 0.5, 0.75, 1.0]), [-3, -0.5, 2, 4.5, 7], atol=0.4)


def test_bytes_are_those_that_are_drawn_one_by_one():
    one, other = KeyedGenerator(3, ORDER), KeyedGenerator(3, ORDER)
    assert one.bernoulli(0.5) == other.bernoulli(0.5)
    assert one.bytes(2000).tolist() == [other.integer(256) for _ in range(2000)]
    assert one.integer(1 << 40) == other.integer(1 << 40)
