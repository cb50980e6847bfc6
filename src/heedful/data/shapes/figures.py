"""The shapes, colours and sizes of drawn objects, with their words in English, German and Chinese."""

import math
from dataclasses import dataclass
from typing import NamedTuple

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
    """A colour: its adjectives in three languages, and its red, green and blue."""

    english: str
    german: str  # the stem, which takes the endings
    chinese: str
    rgb: tuple[int, int, int]


class Size(NamedTuple):
    """A size: its adjectives in three languages, and the least and the largest radius, in pixels."""

    english: str
    german: str  # the stem, which takes the endings
    chinese: str
    radius: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """Appearance of an object, as a caption tells it: its size, its colour and its shape."""

    size: Size
    colour: Colour
    shape: Shape


def _turns(count: int) -> list[float]:
    """The angles of `count` points on a circle, from the top on."""
    return [2 * math.pi * step / count for step in range(count)]


def _square() -> Outline:
    return (-0.93, -0.93), (0.93, -0.93), (0.93, 0.93), (-0.93, 0.93)


def _circle() -> Outline:
    return tuple((0.98 * math.sin(turn), -0.98 * math.cos(turn)) for turn in _turns(60))


def _star() -> Outline:
    """Five points, with a radius of 1.05 at the tips and 0.44 between them; the middle of its box is at (0, 0)."""
    radii = [1.05 if step % 2 == 0 else 0.44 for step in range(10)]
    corners = zip(radii, _turns(10), strict=True)
    return tuple((radius * math.sin(turn), 0.1 - radius * math.cos(turn)) for radius, turn in corners)


def _heart() -> Outline:
    """A heart between -1 and 1: a polynomial of sines and cosines, well known for its form."""
    heights = [13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t) for t in _turns(60)]
    middle, half = (max(heights) + min(heights)) / 2, (max(heights) - min(heights)) / 2
    return tuple((math.sin(t) ** 3, (middle - y) / half) for t, y in zip(_turns(60), heights, strict=True))


SHAPES = (
    Shape("circle", ("Kreis", "Kreis"), "m", "圆", "个", _circle()),
    Shape("square", ("Quadrat", "Quadrat"), "n", "正方形", "个", _square()),
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
