"""Maps of attention lie on the image, and boxes where their pixels are."""

import re
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from heedful.inspector.plots import ImageMaps, draw_maps

PIXELS = np.zeros((14, 21, 3), np.uint8)
MAPS = np.full((5, 2, 3), 1 / 6, np.float32)


def outlined(path, boxes):
    """The left, top, right and bottom of each dotted outline in an SVG file, in points."""
    draw_maps(ImageMaps(PIXELS, MAPS, list("abcde"), "title", "subtitle", boxes), path)
    found = re.findall(r'<path d="([^"]*)"[^>]*stroke-dasharray', path.read_text())
    corners = [
        [[float(number) for number in pair.split()] for pair in re.findall(r"[ML] ([^ML\n]*)", one)] for one in found
    ]
    return [[*np.min(one, 0), *np.max(one, 0)] for one in corners]


def test_a_box_is_outlined_at_its_pixels_over_the_word_that_it_belongs_to(tmp_path):
    whole = [0, 0, 21, 14]
    frames = outlined(tmp_path / "all.svg", dict.fromkeys(range(5), whole))
    assert len(frames) == 5
    assert all(first[0] < second[0] for first, second in pairwise(frames))
    left, top, right, bottom = frames[3]
    width, height = right - left, bottom - top
    [box] = outlined(tmp_path / "one.svg", {3: [3, 7, 9, 11]})
    assert box == pytest.approx(
        [left + width * 3 / 21, top + height * 7 / 14, left + width * 9 / 21, top + height * 11 / 14], abs=0.01
    )


def test_without_boxes_none_is_drawn(tmp_path):
    assert outlined(tmp_path / "none.svg", {}) == []
