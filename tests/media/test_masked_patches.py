"""Hidden patches: how many there are, and what they depend on."""

import numpy as np
import pytest

from heedful.media.image_augmentation import masked_patches


@pytest.mark.parametrize(("rate", "count"), [(0.75, 26), (0.5, 18), (0.0, 1), (0.01, 1), (0.999, 34)])
def test_the_rate_of_all_patches_is_hidden_but_at_least_one_and_never_all(rate, count):
    hidden = masked_patches((5, 7), rate, 3, 0, 11)
    assert hidden.shape == (5, 7)
    assert hidden.sum() == count


def test_the_same_key_hides_the_same_patches_and_each_part_of_it_counts():
    keys = [(3, 0, 11), (4, 0, 11), (3, 1, 11), (3, 0, 12)]
    found = [masked_patches((5, 7), 0.5, *key) for key in keys]
    assert np.array_equal(found[0], masked_patches((5, 7), 0.5, *keys[0]))
    assert all(not np.array_equal(found[0], other) for other in found[1:])


def test_every_patch_is_hidden_equally_often():
    often = np.mean([masked_patches((3, 5), 0.4, 7, 2, number) for number in range(2003)], axis=0)
    assert np.abs(often - 0.4).max() < 5 * (0.4 * 0.6 / 2003) ** 0.5
