"""Attention inside a box is what its patches get, and chance what they would get by size alone."""

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.inspector.capture.sources import ImageInput
from heedful.inspector.measures.attention import box_masses, cross_attention
from toy_readers import CAPTION, PICTURE, SOUND, loaded

WORDS = [(0, 3, None), (4, 8, [0, 0, 7, 7]), (9, 13, [0, 0, 21, 14]), (14, 16, [3, 7, 10, 14])]


def test_a_patch_counts_with_the_share_that_lies_in_the_box():
    picture = ImageInput(np.zeros((14, 21, 3), np.uint8), (2, 3), before=1)
    assert picture.shares([0, 0, 7, 7]).tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert picture.shares([0, 0, 21, 14]).tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert picture.shares([3, 7, 10, 14]).tolist() == pytest.approx([0, 0, 0, 0, 4 / 7, 3 / 7, 0])


def test_the_mass_of_a_word_is_that_of_the_patches_in_its_box_when_it_is_predicted():
    subject = loaded("captioning").use()
    weights = cross_attention(subject, PICTURE, CAPTION).weights
    left, side, is_ = box_masses(subject, PICTURE, CAPTION, WORDS)
    assert [found.word for found in (left, side, is_)] == ["left", "side", "is"]
    torch.testing.assert_close(left.mass, weights[:, :, 1, 1])
    torch.testing.assert_close(side.mass, 1 - weights[:, :, 2, 0])  # all but the class token
    torch.testing.assert_close(is_.mass, weights[:, :, 3, 4] * 4 / 7 + weights[:, :, 3, 5] * 3 / 7)


def test_chance_is_the_area_of_the_box_where_there_is_no_class_token():
    image = {"class_token": False, "size": [14, 21], "patch": 7}
    subject = loaded("captioning", image=image).use()
    assert [found.chance for found in box_masses(subject, PICTURE, CAPTION, WORDS)] == pytest.approx([1 / 6, 1, 1 / 6])


def test_what_has_no_boxes_is_refused():
    with pytest.raises(InputError, match="boxes are for images"):
        box_masses(loaded("speech_recognition").use(), SOUND, "a high tone", [])
    with pytest.raises(InputError, match="the model writes 'the elephant' as"):
        box_masses(loaded("captioning").use(), PICTURE, "the elephant", [])
