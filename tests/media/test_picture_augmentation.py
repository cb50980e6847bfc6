"""Augmentation of images: a function of its key, within the limits of the recipe."""

import numpy as np
import pytest

from heedful.config.modalities import ImageConfig
from heedful.media.image_augmentation import augmented, erased, shifted, zoomed
from heedful.random_numbers import AUGMENTATION, KeyedGenerator

PIXELS = np.random.default_rng(1).integers(1, 256, size=(13, 17, 3), dtype=np.uint8)
KINDS = {"shift": 3, "flip": True, "zoom": 0.5, "trivial_augment": True, "erase": 0.9}


def chance(example: int = 1) -> KeyedGenerator:
    return KeyedGenerator(7, AUGMENTATION, 2, example)


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
    behind = np.pad(PIXELS, ((2, 2), (2, 2), (0, 0)))
    parts = {behind[down : down + 13, right : right + 17].tobytes() for down in range(5) for right in range(5)}
    assert {shifted(PIXELS, 2, chance(example)).tobytes() for example in range(300)} == parts


def test_a_zoomed_picture_of_one_colour_keeps_it():
    assert (zoomed(np.full((13, 17, 3), 90, np.uint8), 0.3, chance()) == 90).all()


def test_what_is_erased_is_a_rectangle_of_noise_of_at_most_a_third():
    for example in range(50):
        rows, columns = np.nonzero((erased(PIXELS, chance(example)) != PIXELS).any(axis=2))
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert len(rows) > 0.9 * height * width  # noise may by chance be what it covers
        assert (height - 0.5) * (width - 0.5) <= 13 * 17 / 3  # its sides are rounded
