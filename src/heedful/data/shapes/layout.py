"""Draws scenes at random: figures, and places for them in which exactly one caption is right.

Of two objects the smaller one is described by the larger one, as one says that the bicycle stands beside the house and
not the house beside the bicycle. Where both have one size, the left or the upper one comes first. So a picture has one
caption, and all four relations occur. A third object is above or below two that are side by side, or beside two of
which one is above the other; it is about as far from the one as from the other.

Only `random.random` is asked for numbers: the Python documentation promises its sequence for all versions.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

from heedful.data.shapes.figures import COLOURS, SHAPES, SIZES, Figure
from heedful.data.shapes.scene import SIDE, UNITS, Object, Scene

T = TypeVar("T")
Spot = tuple[int, int, int]  # x and y of the middle of an object, and its radius, in units

COUNTS = (1, 2, 2, 2, 3, 3, 3, 3)  # objects of a scene; each is as likely as it is often
MARGIN = 2.0  # pixels between objects and the edge of the picture
ROOM = 4.0  # pixels within which a single object is moved about in its place
PAIR, TRIPLE = (
    (4.0, 12.0, 5.0),
    (6.0, 9.0, 2.0),
)  # of two objects, in pixels: least gap, largest gap, and most shift across
GAP = (4.0, 8.0)  # pixels between the third object and the other two
SHIFT = 1.0  # pixels by which the third object is off the middle between the other two, at most
BACKGROUND = (226.0, 256.0)  # red, green and blue of a background are whole numbers in between
ROWS, COLUMNS = ("top", "", "bottom"), ("left", "", "right")
OPPOSITES = {"left": "right", "above": "below"}
TURNED = {"left": "above", "above": "left", "below": "right", "": ""}  # relations after x and y are exchanged


def draw(rng: random.Random) -> Scene:
    """Draw a scene; `rng.random` is the only source of randomness."""
    figures = _figures(rng, one(rng, COUNTS))
    radii = [_units(uniform(rng, *figure.size.radius)) for figure in figures]
    spots, where, third = _single(rng, radii[0]) if len(radii) == 1 else _several(rng, radii)
    objects = [Object(figure, *spot) for figure, spot in zip(figures, spots, strict=True)]
    if len(objects) > 1 and SIZES.index(figures[0].size) > SIZES.index(figures[1].size):
        objects[:2], where = objects[1::-1], OPPOSITES[where]
    red, green, blue = (int(uniform(rng, *BACKGROUND)) for _ in range(3))
    return Scene(tuple(objects), where, third, (red, green, blue))


def one(rng: random.Random, items: Sequence[T]) -> T:
    """Return a random item of a sequence; all are equally likely."""
    return items[int(rng.random() * len(items))]


def uniform(rng: random.Random, low: float, high: float) -> float:
    """Return a random number from `low` to `high`, evenly distributed."""
    return low + (high - low) * rng.random()


def _units(pixels: float) -> int:
    return round(pixels * UNITS)


def _figures(rng: random.Random, count: int) -> list[Figure]:
    """Different figures, so that each phrase of a caption is about one object."""
    figures: list[Figure] = []
    while len(figures) < count:
        figure = Figure(one(rng, SIZES), one(rng, COLOURS), one(rng, SHAPES))
        if figure not in figures:
            figures.append(figure)
    return figures


def _single(rng: random.Random, radius: int) -> tuple[list[Spot], str, str]:
    """The spot of a single object and its place, one of nine."""
    row, column = one(rng, range(3)), one(rng, range(3))
    spot = _within(rng, column, radius), _within(rng, row, radius), radius
    return [spot], f"{ROWS[row]} {COLUMNS[column]}".strip() or "middle", ""


def _within(rng: random.Random, third: int, radius: int) -> int:
    """A place in the first, the second or the last third of the width or the height of a picture."""
    moved = _units(uniform(rng, 0.0, ROOM))
    edge = _units(MARGIN) + radius
    return (edge + moved, _units(SIDE / 2 - ROOM / 2) + moved, _units(SIDE) - edge - moved)[third]


def _several(rng: random.Random, radii: Sequence[int]) -> tuple[list[Spot], str, str]:
    """The spots of two or three objects, the relation of the first to the second, and that of the third to both."""
    spots, third = _in_a_row(rng, radii)
    where = "left"
    if rng.random() < 0.5:
        spots = [(y, x, radius) for x, y, radius in spots]
        where, third = TURNED[where], TURNED[third]
    right, down = (_offset(rng, [(spot[axis], spot[2]) for spot in spots]) for axis in (0, 1))
    return [(x + right, y + down, radius) for x, y, radius in spots], where, third


def _in_a_row(rng: random.Random, radii: Sequence[int]) -> tuple[list[Spot], str]:
    """Two objects side by side, the third, if there is one, above or below both; and which of these it is."""
    least, most, shift = PAIR if len(radii) == 2 else TRIPLE
    gap = _units(uniform(rng, least, most))
    left, right = radii[:2]
    spots = [(0, 0, left), (left + gap + right, _units(uniform(rng, -shift, shift)), right)]
    if len(radii) == 2:
        return spots, ""
    x = left + gap // 2 + _units(uniform(rng, -SHIFT, SHIFT))
    away = _units(uniform(rng, *GAP)) + radii[2]
    if rng.random() < 0.5:
        return [*spots, (x, min(y - radius for _, y, radius in spots) - away, radii[2])], "above"
    return [*spots, (x, max(y + radius for _, y, radius in spots) + away, radii[2])], "below"


def _offset(rng: random.Random, spans: Sequence[tuple[int, int]]) -> int:
    """A move along one axis that brings everything into the picture, from middles and radii."""
    least = _units(MARGIN) - min(middle - radius for middle, radius in spans)
    most = _units(SIDE - MARGIN) - max(middle + radius for middle, radius in spans)
    return round(uniform(rng, least, most))
