"""Random numbers as a function of a key: the raw output of Philox (Salmon et al. 2011).

It is the same on every machine and in every numpy, which numpy does not promise of what it derives from it.
"""

import numpy as np

# What numbers are drawn for: a key is (seed, one of these, ...), so that two purposes never share numbers.
ORDER, SHARE, BLUR, BATCHES, PHASE, WINDOWS, PASSAGES, MASKS = range(8)


def draw(count: int, *key: int) -> np.ndarray:
    """Return `count` random 64-bit numbers, uint64, that depend on the key alone."""
    return np.random.Philox(np.random.SeedSequence(key)).random_raw(count)


def shuffled(items: np.ndarray, *key: int) -> np.ndarray:
    """Return the items in an order that depends on their number and the key alone."""
    return items[np.argsort(draw(len(items), *key), kind="stable")]
