"""TrivialAugment changes an image in one of many ways, whatever its channels and frames."""

import numpy as np
import pytest

from heedful.media import image_augmentation as trivial_augment
from heedful.media.image_augmentation import CHANGES, changed, trivially_augmented
from heedful.random_numbers import AUGMENTATION, KeyedGenerator

PIXELS = np.random.default_rng(1).integers(0, 256, size=(13, 17, 3), dtype=np.uint8)


def chance(example):
    return KeyedGenerator(7, AUGMENTATION, 2, example)


@pytest.mark.parametrize("strength", [-1.0, -0.31, 0.0, 0.73, 1.0])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_each_change_keeps_the_size_and_the_picture_that_it_is_given(number, channels, strength):
    before = PIXELS[:, :, :channels].copy()
    given = before[:, ::-1]
    found = changed(given, CHANGES[number], strength)
    assert (found.shape, found.dtype) == ((13, 17, channels), np.uint8)
    assert np.array_equal(given, before[:, ::-1])


def test_all_changes_are_drawn_alike_often_and_with_strengths_of_both_signs(monkeypatch):
    drawn = []
    recorders = tuple(lambda picture, strength, n=n: drawn.append((n, strength)) or picture for n in range(14))
    assert len(CHANGES) == len(recorders)
    monkeypatch.setattr(trivial_augment, "CHANGES", recorders)
    for example in range(1400):
        trivially_augmented(PIXELS, 3, chance(example))
    numbers, strengths = (np.array(column) for column in zip(*drawn, strict=True))
    assert np.bincount(numbers, minlength=14).min() > 60
    assert -1 <= strengths.min() < -0.99 < 0.99 < strengths.max() <= 1


def test_frames_are_changed_as_single_pictures_are():
    frames = np.concatenate([PIXELS, PIXELS[::-1]], axis=2)
    for example in range(31):
        found = trivially_augmented(frames, 3, chance(example))
        assert np.array_equal(found[:, :, :3], trivially_augmented(PIXELS, 3, chance(example)))
        assert np.array_equal(found[:, :, 3:], trivially_augmented(PIXELS[::-1], 3, chance(example)))


def test_a_shift_moves_by_a_third_and_shows_grey_beside():
    wide = np.tile(PIXELS[:, :12], (1, 1, 1))
    found = changed(wide, CHANGES[3], 1.0)
    assert np.array_equal(found[:, :8], wide[:, 4:])
    assert (found[:, 8:] == 128).all()


def test_no_strength_turns_nothing_and_solarizing_inverts_what_is_bright():
    assert np.array_equal(changed(PIXELS, CHANGES[5], 0.0), PIXELS)
    assert np.array_equal(changed(PIXELS, CHANGES[11], 0.0), 255 - PIXELS)
    assert np.array_equal(changed(PIXELS, CHANGES[11], -0.5), np.where(PIXELS < 128, PIXELS, 255 - PIXELS))
