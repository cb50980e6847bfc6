"""Pictures of scenes: the pixels are where the boxes are, in the colours that the captions name."""

from io import BytesIO
from itertools import product

import numpy as np
import pytest
from PIL import Image

from heedful.config.modalities import ImageConfig
from heedful.corpora.shapes import scene
from heedful.corpora.shapes.corpus import png
from heedful.corpora.shapes.scene import COLOURS, LARGE, SHAPES, SIDE, SIZES, SMALL, UNITS, Figure, Object, Scene
from heedful.media.images import read_image

SCENES = [scene(13, index) for index in range(401)]


def pixels(one):
    return read_image(png(one), ImageConfig(size=(SIDE, SIDE), channels=3)).astype(int)


def inside(box):
    left, top, right, bottom = box
    return np.s_[top:bottom, left:right]


def test_a_picture_is_a_small_png():
    content = png(SCENES[0])
    with Image.open(BytesIO(content)) as picture:
        assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", (64, 64))
    assert len(content) < 3000


def test_the_same_scene_has_the_same_bytes():
    assert [png(one) for one in SCENES[:31]] == [png(one) for one in SCENES[:31]]
    assert len({png(one) for one in SCENES[:31]}) == 31


def test_boxes_hold_all_that_is_drawn_and_no_row_or_column_too_many():
    for one in SCENES:
        drawn = (pixels(one) != one.background).any(axis=2)
        for item in one.objects:
            found = drawn[inside(item.box)]
            assert all(edge.any() for edge in (found[0], found[-1], found[:, 0], found[:, -1]))
        for item in one.objects:
            drawn[inside(item.box)] = False
        assert not drawn.any()


def test_a_colour_is_in_the_boxes_of_its_objects_only():
    for one in SCENES:
        picture = pixels(one)
        for colour in COLOURS:
            where = (picture == colour.rgb).all(axis=2)
            for item in (item for item in one.objects if item.figure.colour is colour):
                assert where[inside(item.box)].mean() > 0.15
                where[inside(item.box)] = False
            assert not where.any()


def test_edges_are_smooth():
    picture = pixels(SCENES[0])
    palette = {SCENES[0].background, *(item.figure.colour.rgb for item in SCENES[0].objects)}
    mixed = [pixel for pixel in map(tuple, picture.reshape(-1, 3)) if pixel not in palette]
    assert 10 < len(mixed) < 400


def test_the_background_is_light():
    assert all(min(one.background) > 220 > max(min(colour.rgb) for colour in COLOURS) for one in SCENES)
    assert len({one.background for one in SCENES}) > 350


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.english)
def test_shapes_are_told_apart_by_their_pixels(size):
    """Two shapes of the same size in the same place differ in at least a tenth of their box."""
    middle = SIDE * UNITS // 2
    radius = round(sum(size.radius) / 2 * UNITS)
    drawn = {
        shape: pixels(
            Scene((Object(Figure(size, COLOURS[0], shape), middle, middle, radius),), "middle", "", (255,) * 3)
        )
        for shape in SHAPES
    }
    for one, other in product(SHAPES, SHAPES):
        if one is not other:
            different = (np.abs(drawn[one] - drawn[other]).max(axis=2) > 100).sum()
            assert different > (2 * radius / UNITS) ** 2 / 10, (one.english, other.english)


def test_colours_are_far_from_each_other():
    for one, other in product(COLOURS, COLOURS):
        assert one is other or np.abs(np.subtract(one.rgb, other.rgb)).sum() > 100


def test_large_is_much_larger_than_small():
    ratios = np.divide(LARGE.radius, SMALL.radius)
    assert ratios.min() > 1.6
