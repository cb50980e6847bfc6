"""Augmentation of pictures: a function of its key, within the limits of the recipe."""

import numpy as np
import pytest

from heedful.config.modalities import ImageConfig
from heedful.data.picture_augmentation import augmented, erased, shifted, zoomed
from heedful.data.random_numbers import AUGMENTATION, Chance

PIXELS = np.random.default_rng(1).integers(1, 256, size=(13, 17, 3), dtype=np.uint8)
KINDS = {"shift": 3, "flip": True, "zoom": 0.5, "erase": 0.9}


def chance(example: int = 1) -> Chance:
    return Chance(7, AUGMENTATION, 2, example)


@pytest.mark.parametrize("kinds", [*({key: value} for key, value in KINDS.items()), KINDS])
def test_a_picture_depends_on_its_key_alone_and_keeps_its_size(kinds):
    config, before = ImageConfig(**kinds), PIXELS.copy()
    found = [augmented(PIXELS, config, chance(example)) for example in range(9)]
    again = [augmented(PIXELS, config, chance(example)) for example in range(9)]
    assert all(map(np.array_equal, found, again))
    assert {pixels.shape for pixels in found} == {PIXELS.shape}
    assert {pixels.dtype for pixels in found} == {np.dtype(np.uint8)}
    assert len({pixels.tobytes() for pixels in found}) > 1
    assert np.array_equal(PIXELS, before)


def test_without_augmentation_a_picture_stays_as_it_is():
    assert augmented(PIXELS, ImageConfig(), chance()) is PIXELS


def test_a_shifted_picture_is_a_part_of_the_picture_beside_black():
    places = {
        np.argwhere(shifted(PIXELS, 2, chance(example))[:, :, 0] > 0).min(0).tolist().__str__()
        for example in range(200)
    }
    assert len(places) == 9  # 0, 1 or 2 rows, and columns, of black before the picture
    for example in range(20):
        pixels = shifted(PIXELS, 2, chance(example))
        assert (pixels == 0).any(axis=2).sum() <= 13 * 17 - 11 * 15


def test_a_zoomed_picture_of_one_colour_keeps_it():
    assert (zoomed(np.full((13, 17, 3), 90, np.uint8), 0.3, chance()) == 90).all()


def test_what_is_erased_is_a_rectangle_of_noise_of_at_most_a_third():
    for example in range(50):
        pixels = erased(PIXELS, chance(example))
        rows, columns, _ = np.nonzero(pixels != PIXELS)
        assert 0 < len(rows) <= 3 * 13 * 17 * 0.45
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert (
            pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            != PIXELS[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        ).mean() > 0.5
        assert height <= 13
        assert width <= 17
