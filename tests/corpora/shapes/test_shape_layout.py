"""Places of drawn objects: exactly one caption is right, and it can be read off the boxes."""

from itertools import permutations

import pytest

from heedful.corpora.shapes import scene
from heedful.corpora.shapes.captions import PLACES, RELATIONS
from heedful.corpora.shapes.scene import LARGE, SHAPES, SIDE, SMALL

ALIGNED = 4  # pixels that the middles of two neighbours may differ by where there is a third object
OPPOSITES = {"left": "right", "right": "left", "above": "below", "below": "above"}


@pytest.fixture(scope="module")
def scenes():
    return [scene(3, index) for index in range(3001)]


def boxes_of(one):
    return [item.box for item in one.objects]


def middle(box):
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def relations(box, *others):
    """How a box lies to all others: the edges between which there is nothing."""
    found = {
        "left": all(box[2] < other[0] for other in others),
        "right": all(box[0] > other[2] for other in others),
        "above": all(box[3] < other[1] for other in others),
        "below": all(box[1] > other[3] for other in others),
    }
    return {name for name, holds in found.items() if holds}


def readings(objects):
    """All (figures, relation, relation of the third) that an image of two or three objects may be told by."""
    found = set()
    for first, second, *third in permutations(objects):
        relation = "".join(relations(first.box, second.box))
        if relation not in RELATIONS:  # they lie askew
            continue
        axis = 1 if relation in ("left", "right") else 0
        off = abs(middle(first.box)[axis] - middle(second.box)[axis])
        if third and off >= ALIGNED:
            continue
        sizes = [item.figure.size for item in (first, second)]
        comes_first = sizes == [SMALL, LARGE] or (sizes[0] == sizes[1] and relation in ("left", "above"))
        across = {"left", "right", "above", "below"} - {relation, OPPOSITES[relation]}
        sides = across & relations(third[0].box, first.box, second.box) if third else {""}
        if comes_first:
            found |= {(tuple(item.figure for item in (first, second, *third)), relation, side) for side in sides}
    return found


def test_the_caption_of_several_objects_is_the_only_one_that_their_boxes_allow(scenes):
    several = [one for one in scenes if len(one.objects) > 1]
    assert len(several) > 2000
    for one in several:
        assert readings(one.objects) == {one.facts}


def test_two_objects_are_in_one_relation_only(scenes):
    for one in scenes:
        if len(one.objects) > 1:
            assert relations(one.objects[0].box, one.objects[1].box) == {one.where}


def test_a_third_object_is_as_said_of_both_others(scenes):
    for one in scenes:
        if one.third:
            assert one.third in relations(one.objects[2].box, one.objects[0].box, one.objects[1].box)


def test_a_single_object_is_in_the_ninth_of_the_picture_that_is_said(scenes):
    names = [["top left", "top", "top right"], ["left", "middle", "right"], ["bottom left", "bottom", "bottom right"]]
    for one in scenes:
        if len(one.objects) == 1:
            column, row = (int(place * 3 / SIDE) for place in middle(one.objects[0].box))
            assert names[row][column] == one.where


def test_all_places_relations_and_numbers_of_objects_occur(scenes):
    assert {one.where for one in scenes if len(one.objects) == 1} == set(PLACES)
    for count in (2, 3):
        assert {one.where for one in scenes if len(one.objects) == count} == set(RELATIONS)
    assert {one.third for one in scenes} == {"", *RELATIONS}
    assert {len(one.objects) for one in scenes} == {1, 2, 3}


def test_objects_lie_in_the_picture_and_apart_from_each_other(scenes):
    for one in scenes:
        assert all(min(box) > 0 and max(box) < SIDE for box in boxes_of(one))
        assert all(relations(a, b) for a, b in permutations(boxes_of(one), 2))


def test_small_and_large_are_told_apart_by_the_box(scenes):
    for shape in SHAPES:
        sides = {SMALL: set(), LARGE: set()}
        for item in (item for one in scenes for item in one.objects if item.figure.shape is shape):
            sides[item.figure.size].add(max(item.box[2] - item.box[0], item.box[3] - item.box[1]))
        assert max(sides[SMALL]) + 4 < min(sides[LARGE])


def test_no_figure_comes_twice_in_a_picture(scenes):
    assert all(len(set(one.facts[0])) == len(one.objects) for one in scenes)


def test_the_same_caption_is_drawn_in_many_places():
    drawn = [one for one in (scene(1, index) for index in range(20_000)) if one.facts[1:] == ("middle", "")]
    assert len({one.facts for one in drawn}) < len(drawn)
    assert len({(one.facts, one.objects) for one in drawn}) == len(drawn)
