"""Scenes of shapes: figures, colours and sizes with their words, in random layouts with exactly one correct caption."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

Outline = tuple[tuple[float, float], ...]  # corners (x, y), from -1 to 1, y downwards


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """A shape: its nouns in three languages and its outline."""

    english: str
    german: tuple[str, str]  # nominative and dative
    gender: str  # of the German noun: "m", "f" or "n"
    chinese: str
    classifier: str
    outline: Outline


class Colour(NamedTuple):
    """A colour: its adjectives in three languages, and its RGB values."""

    english: str
    german: str  # the stem, which takes the endings
    chinese: str
    rgb: tuple[int, int, int]


class Size(NamedTuple):
    """A size: its adjectives in three languages, and the minimum and maximum radius in pixels."""

    english: str
    german: str  # the stem, which takes the endings
    chinese: str
    radius: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """Appearance of an object in a caption: its size, its colour and its shape."""

    size: Size
    colour: Colour
    shape: Shape


def _turns(count: int) -> list[float]:
    """Return the angles of `count` points on a circle, starting at the top."""
    return [2 * math.pi * step / count for step in range(count)]


def _star() -> Outline:
    """Return a five-pointed star with radius 1.05 at the tips and 0.44 between them, centred in its box."""
    radii = [1.05 if step % 2 == 0 else 0.44 for step in range(10)]
    corners = zip(radii, _turns(10), strict=True)
    return tuple((radius * math.sin(turn), 0.1 - radius * math.cos(turn)) for radius, turn in corners)


def _heart() -> Outline:
    """Return the well-known heart curve of sines and cosines, scaled to -1 to 1."""
    heights = [13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t) for t in _turns(60)]
    middle, half = (max(heights) + min(heights)) / 2, (max(heights) - min(heights)) / 2
    return tuple((math.sin(t) ** 3, (middle - y) / half) for t, y in zip(_turns(60), heights, strict=True))


CIRCLE = tuple((0.98 * math.sin(turn), -0.98 * math.cos(turn)) for turn in _turns(60))
SQUARE = ((-0.93, -0.93), (0.93, -0.93), (0.93, 0.93), (-0.93, 0.93))
SHAPES = (
    Shape("circle", ("Kreis", "Kreis"), "m", "圆", "个", CIRCLE),
    Shape("square", ("Quadrat", "Quadrat"), "n", "正方形", "个", SQUARE),
    Shape("triangle", ("Dreieck", "Dreieck"), "n", "三角形", "个", ((0, -0.9), (1, 0.88), (-1, 0.88))),
    Shape("star", ("Stern", "Stern"), "m", "五角星", "颗", _star()),
    Shape("heart", ("Herz", "Herzen"), "n", "爱心", "颗", _heart()),
    Shape("diamond", ("Raute", "Raute"), "f", "菱形", "个", ((0, -1), (0.8, 0), (0, 1), (-0.8, 0))),
)
COLOURS = (
    Colour("red", "rot", "红色", (215, 40, 40)),
    Colour("yellow", "gelb", "黄色", (240, 185, 15)),
    Colour("green", "grün", "绿色", (40, 160, 70)),
    Colour("blue", "blau", "蓝色", (40, 95, 220)),
    Colour("purple", "violett", "紫色", (155, 60, 190)),
    Colour("black", "schwarz", "黑色", (30, 30, 30)),
)
SMALL = Size("small", "klein", "小", (6.0, 7.0))
LARGE = Size("large", "groß", "大", (10.5, 11.5))
SIZES = (SMALL, LARGE)


SIDE = 64  # pixels of an image, in width and in height
UNITS = 4  # per pixel: an image is drawn larger by this factor, and then reduced

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom are the first pixels outside


@dataclass(frozen=True, slots=True)
class Object:
    """An object in an image: a figure with the centre and the radius of its outline, in units."""

    figure: Figure
    x: int
    y: int
    radius: int

    @property
    def outline(self) -> list[tuple[int, int]]:
        """The corners of the outline, in units."""
        corners = self.figure.shape.outline
        return [(self.x + round(self.radius * x), self.y + round(self.radius * y)) for x, y in corners]

    @property
    def box(self) -> Box:
        """The smallest box with all pixels that the object touches."""
        xs, ys = zip(*self.outline, strict=True)
        return min(xs) // UNITS, min(ys) // UNITS, max(xs) // UNITS + 1, max(ys) // UNITS + 1


@dataclass(frozen=True, slots=True)
class Scene:
    """Content of an image: one to three objects, and their positions."""

    objects: tuple[Object, ...]  # in the order of the English caption
    # The position of a single object, a key of PLACES in `captions`; for two or three objects, the relation of the
    # first to the second, a key of RELATIONS there.
    where: str
    third: str  # the relation of the third object to the first two, a key of RELATIONS; "" without a third
    background: tuple[int, int, int]  # RGB

    @property
    def facts(self) -> tuple[tuple[Figure, ...], str, str]:
        """The content of a caption; two scenes with the same facts have the same captions."""
        return tuple(item.figure for item in self.objects), self.where, self.third


T = TypeVar("T")
Spot = tuple[int, int, int]  # x and y of the centre of an object, and its radius, in units

COUNTS = (1, 2, 2, 2, 3, 3, 3, 3)  # objects in a scene; repeated numbers are more likely
MARGIN = 2.0  # pixels between objects and the edge of the image
ROOM = 4.0  # maximum shift of a single object within its part of the image, in pixels
# For the first two objects in a scene of two and of three: minimum gap, maximum gap, maximum sideways shift, in pixels.
PAIR, TRIPLE = (4.0, 12.0, 5.0), (6.0, 9.0, 2.0)
GAP = (4.0, 8.0)  # pixels between the third object and the other two
SHIFT = 1.0  # maximum distance of the third object from the middle of the gap between the other two, in pixels
BACKGROUND = (226.0, 256.0)  # range of the red, green and blue of a background
ROWS, COLUMNS = ("top", "", "bottom"), ("left", "", "right")
OPPOSITES = {"left": "right", "above": "below"}
TRANSPOSED = {"left": "above", "above": "left", "below": "right", "": ""}  # relations after x and y are swapped


def draw(rng: random.Random) -> Scene:
    """Sample a scene; `rng.random` is the only source of randomness."""
    count = one(rng, COUNTS)
    figures: list[Figure] = []
    while len(figures) < count:
        figure = Figure(one(rng, SIZES), one(rng, COLOURS), one(rng, SHAPES))
        if figure not in figures:  # so that each phrase of a caption fits only one object
            figures.append(figure)
    radii = [_units(uniform(rng, *figure.size.radius)) for figure in figures]
    spots, where, third = _single(rng, radii[0]) if len(radii) == 1 else _several(rng, radii)
    objects = [Object(figure, *spot) for figure, spot in zip(figures, spots, strict=True)]
    # A fixed order, so that only one caption is correct: small before large, otherwise left or above first.
    if len(objects) > 1 and SIZES.index(figures[0].size) > SIZES.index(figures[1].size):
        objects[:2], where = objects[1::-1], OPPOSITES[where]
    red, green, blue = (int(uniform(rng, *BACKGROUND)) for _ in range(3))
    return Scene(tuple(objects), where, third, (red, green, blue))


def one(rng: random.Random, items: Sequence[T]) -> T:
    return items[int(rng.random() * len(items))]


def uniform(rng: random.Random, low: float, high: float) -> float:
    return low + (high - low) * rng.random()


def _units(pixels: float) -> int:
    return round(pixels * UNITS)


def _single(rng: random.Random, radius: int) -> tuple[list[Spot], str, str]:
    """Choose one of nine positions for a single object, such as "top left", and sample coordinates there.

    Return the spot in a list, the name of the position, and "" for the relation of a third object.
    """

    def coordinate(third: int) -> int:  # in the first, the second or the last third of the width or the height
        shift = _units(uniform(rng, 0.0, ROOM))
        edge = _units(MARGIN) + radius
        return (edge + shift, _units(SIDE / 2 - ROOM / 2) + shift, _units(SIDE) - edge - shift)[third]

    row, column = one(rng, range(3)), one(rng, range(3))
    spot = coordinate(column), coordinate(row), radius
    return [spot], f"{ROWS[row]} {COLUMNS[column]}".strip() or "middle", ""


def _several(rng: random.Random, radii: Sequence[int]) -> tuple[list[Spot], str, str]:
    """Sample the spots of two or three objects, and the relations of the first to the second and the third to both."""
    spots, third = _in_a_row(rng, radii)
    where = "left"
    if rng.random() < 0.5:
        spots = [(y, x, radius) for x, y, radius in spots]
        where, third = TRANSPOSED[where], TRANSPOSED[third]
    offsets = []  # x and y shifts that move everything into the image
    for axis in (0, 1):
        least = _units(MARGIN) - min(spot[axis] - spot[2] for spot in spots)
        most = _units(SIDE - MARGIN) - max(spot[axis] + spot[2] for spot in spots)
        offsets.append(round(uniform(rng, least, most)))
    return [(x + offsets[0], y + offsets[1], radius) for x, y, radius in spots], where, third


def _in_a_row(rng: random.Random, radii: Sequence[int]) -> tuple[list[Spot], str]:
    """Place two objects side by side and a third, if any, above or below; return the spots and the third's relation."""
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
