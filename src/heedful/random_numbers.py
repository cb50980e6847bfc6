"""Random numbers as a function of a key: the raw output of Philox (Salmon et al. 2011).

The raw output is the same on every machine and in every version of numpy, unlike numbers that numpy derives from it.
"""

from itertools import chain, islice, repeat

import numpy as np

# The purposes of random numbers: one of these is part of a key, so that different purposes do not share numbers.
ORDER, SHARE, BLUR, BATCHES, PHASE, WINDOWS, PASSAGES, MASKS, WORDS, NOISE, AUGMENTATION, MIXUP, PATCHES = range(13)


def seed_of(*key: int) -> int:
    """Return a 64-bit random seed that is a pure function of its key, one or more integers."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])


def draw(count: int, *key: int) -> np.ndarray:
    """Return `count` random 64-bit numbers, uint64, that depend only on the key."""
    return np.random.Philox(np.random.SeedSequence(key)).random_raw(count)


def draw_at(positions: np.ndarray, *key: int) -> np.ndarray:
    """Return a random uint64 for each position; each number depends only on its position and the key.

    The numbers come from the mixing function of SplitMix64 (Steele et al. 2014), with the position as its counter.
    """
    numbers = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed_of(*key))
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def shuffled(items: np.ndarray, *key: int) -> np.ndarray:
    """Return the items of an array in a random order, which depends only on the number of items and the key."""
    return items[np.argsort(draw(len(items), *key), kind="stable")]


class KeyedGenerator:
    """Generator of random numbers and decisions that depend only on a key and on the calls before."""

    def __init__(self, *key: int) -> None:
        philox = np.random.Philox(np.random.SeedSequence(key))
        sizes = chain([16, 128], repeat(1024))  # most uses need few numbers; the sizes do not change the numbers
        self._numbers = chain.from_iterable(philox.random_raw(size).tolist() for size in sizes)

    def integer(self, limit: int) -> int:
        """Return a random integer from 0 to `limit` - 1; `limit` is at most 2^64."""
        return next(self._numbers) % limit

    def bytes(self, count: int) -> np.ndarray:
        """Return `count` random integers from 0 to 255, uint8, (count,), the same as from calls of `integer(256)`."""
        return np.fromiter(islice(self._numbers, count), np.uint64, count).astype(np.uint8)

    def bernoulli(self, probability: float) -> bool:
        """Return True with the given probability, otherwise False."""
        return next(self._numbers) * 2.0**-64 < probability

    def between(self, low: float, high: float) -> float:
        """Return a random number from `low` to `high`, uniformly distributed."""
        return low + (high - low) * (next(self._numbers) * 2.0**-64)

    def beta(self, alpha: float) -> float:
        """Return a random number from Beta(alpha, alpha), for small `alpha` (Joehnk 1964)."""
        while True:
            first, second = (self.between(0, 1) ** (1 / alpha) for _ in range(2))
            if 0 < first + second <= 1:
                return first / (first + second)

    def binomial(self, coins: int) -> int:
        """Return the number of heads when `coins` fair coins are tossed."""
        whole, rest = divmod(coins, 64)
        tosses = [next(self._numbers) for _ in range(whole)] + [self.integer(1 << rest)]
        return sum(toss.bit_count() for toss in tosses)
