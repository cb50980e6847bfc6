"""Hidden patches of a picture: chosen at random, one by one, by a key of seed, epoch and example (He et al. 2022)."""

import numpy as np
from jaxtyping import Bool

from heedful.data.random_numbers import PATCHES, draw


def hidden_patches(
    grid: tuple[int, int], rate: float, seed: int, epoch: int, number: int
) -> Bool[np.ndarray, "rows columns"]:
    """Choose the patches of a picture to hide: `rate` of them, but at least one, and never all.

    Args:
        grid: Rows and columns of patches.
        rate: The share to hide.
        seed: The first part of the key.
        epoch: The second part.
        number: The third, the number of the example. The same key hides the same patches.
    """
    count = grid[0] * grid[1]
    hidden = np.zeros(count, bool)
    wanted = min(max(1, round(rate * count)), count - 1)
    hidden[np.argsort(draw(count, seed, PATCHES, epoch, number), kind="stable")[:wanted]] = True
    return hidden.reshape(grid)
