"""Attention weights as a heat map, or over an image once for each output word, as PNG or SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from heedful.inspector.plots.fonts import fonts_for

FORMATS = {".png": {}, ".svg": {"Date": None}}  # suffix: metadata; without a date, the same picture is the same file

INK, FAINT = "#1c2430", "#667080"
STRONGEST = "#d55e00"  # vermilion on blue: told apart by every kind of colour vision (Okabe & Ito 2008)
SHADES = LinearSegmentedColormap.from_list("attention", ["#f1f5f9", "#c3d7ee", "#6ea3d8", "#1f66ad", "#0a326b"])

CELL = 0.44  # inches; smaller where a sentence would need more than LONGEST
LONGEST = 40.0  # inches
LONGEST_LABEL = 24  # characters


@dataclass(frozen=True)
class HeatMap:
    """Attention weights of target words to source words, from 0 to 1, with the labels and titles of a heat map."""

    weights: Float[np.ndarray, "T S"]
    source: Sequence[str]
    target: Sequence[str]
    title: str
    subtitle: str


def draw(picture: HeatMap, path: Path) -> set[str]:
    """Draw a heat map of attention to a PNG or SVG file; the largest weight of each target word is outlined.

    Args:
        picture: Weights, labels and titles.
        path: The file to write; its suffix is one of `FORMATS`.

    Returns:
        The characters that no installed font has. Words with such a character are drawn as their number, from 1.
    """
    fonts = fonts_for("".join([*picture.source, *picture.target, picture.title, picture.subtitle]))
    height, width = picture.weights.shape
    cell = min(CELL, LONGEST / max(height, width))
    with rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(width * cell, height * cell))
        axes = figure.add_axes((0, 0, 1, 1))
        _cells(axes, picture.weights)
        _labels(axes, _printable(picture.source, fonts.missing), _printable(picture.target, fonts.missing), cell * 26)
        _titles(axes, picture, fonts.missing)
        _scale(figure, axes, float(picture.weights.max()))
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.25, metadata=FORMATS[path.suffix])
    return fonts.missing


def _printable(words: Sequence[str], missing: set[str]) -> list[str]:
    return [str(number) if missing.intersection(word) else _short(word) for number, word in enumerate(words, start=1)]


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_LABEL else word[: LONGEST_LABEL - 1] + "…"


def _boxed(text: str, missing: set[str]) -> str:
    return "".join("□" if character in missing else character for character in text)


def _cells(axes: Axes, weights: Float[np.ndarray, "T S"]) -> None:
    height, width = weights.shape
    axes.pcolormesh(weights, cmap=SHADES, vmin=0, vmax=weights.max(), edgecolors="white", linewidth=1.2)
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.spines[:].set_visible(False)
    for row, column in enumerate(weights.argmax(1)):
        box = Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, fill=False, edgecolor=STRONGEST, linewidth=1.8)
        axes.add_patch(box)


def _labels(axes: Axes, source: list[str], target: list[str], size: float) -> None:
    axes.set_xticks(
        np.arange(len(source)) + 0.5,
        source,
        rotation=45,
        rotation_mode="anchor",
        ha="left",
        va="center",
        fontsize=size,
        parse_math=False,
    )
    axes.set_yticks(np.arange(len(target)) + 0.5, target, fontsize=size, parse_math=False)
    axes.tick_params(length=0, pad=5, top=True, labeltop=True, bottom=False, labelbottom=False)
    for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
        label.set_color(FAINT if label.get_text().startswith("<") else INK)


def _titles(axes: Axes, picture: HeatMap, missing: set[str]) -> None:
    title, subtitle = (_boxed(text, missing) for text in (picture.title, picture.subtitle))
    heading = axes.set_title(title, loc="left", fontsize=15, pad=30, parse_math=False)
    small = {"textcoords": "offset points", "va": "top", "fontsize": 10, "color": FAINT, "parse_math": False}
    axes.annotate(subtitle, xy=(0, 0), xycoords=heading, xytext=(0, -5), **small)
    if missing:
        note = "A number stands for a word that no font of this machine can draw."
        axes.annotate(note, xy=(0, 0), xycoords="axes fraction", xytext=(0, -8), **small)


def _scale(figure: Figure, axes: Axes, largest: float) -> None:
    """Draw a slim colour bar at the right of a heat map's first rows."""
    width, height = figure.get_size_inches()
    share = min(1.0, 4 * CELL / height)
    bar = axes.inset_axes((1 + 0.25 / width, 1 - share, 0.11 / width, share))
    shades = ScalarMappable(Normalize(0, largest), SHADES)
    colorbar = figure.colorbar(shades, cax=bar, ticks=[0, largest / 2, largest], format="%.2f")
    colorbar.outline.set_visible(False)
    bar.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    bar.set_ylabel("attention weight", fontsize=8, color=FAINT)


ACROSS = 6  # pictures in a row
SIDE = 1.7  # inches of a picture


@dataclass(frozen=True)
class PictureMaps:
    """A picture, and a map of attention weights over its patches for each output word.

    Attributes:
        pixels: the pixels, of 8 bits.
        maps: attention weights of each word.
        words: the output words.
        title: first line above the pictures.
        subtitle: second line above them.
        boxes: what a word is about, where that is known, by the number of the word, from 0: left, top, right and
            bottom in pixels.
    """

    pixels: UInt8[np.ndarray, "H W C"]
    maps: Float[np.ndarray, "T R P"]
    words: Sequence[str]
    title: str
    subtitle: str
    boxes: Mapping[int, Sequence[int | float]] = field(default_factory=dict)


def draw_maps(picture: PictureMaps, path: Path) -> set[str]:
    """Draw the picture once for each word, dark where the word does not look; largest weight and box are outlined.

    Args:
        picture: Picture, weights, words and titles.
        path: The file to write; its suffix is one of `FORMATS` of `heedful.inspector.plots.attention`.

    Returns:
        The characters that no installed font has. Words with such a character are drawn as their number, from 1.
    """
    fonts = fonts_for("".join([*picture.words, picture.title, picture.subtitle]))
    across = min(ACROSS, len(picture.words))
    down = math.ceil(len(picture.words) / across)
    with rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(across * SIDE, down * (SIDE + 0.25) + 0.7), layout="constrained")
        figure.suptitle(f"{picture.title}\n{picture.subtitle}", fontsize=11, parse_math=False)
        places = list(figure.subplots(down, across, squeeze=False).flat)
        for number, (axes, word, weights) in enumerate(zip(places, picture.words, picture.maps, strict=False)):
            _over(axes, picture.pixels, weights)
            if number in picture.boxes:
                _outline(axes, picture.boxes[number], picture.pixels.shape[0] // weights.shape[0])
            label = str(number + 1) if fonts.missing.intersection(word) else word
            axes.set_title(f"{label} ({weights.max():.2f})", fontsize=9, parse_math=False)
        for axes in places[len(picture.words) :]:
            axes.set_visible(False)
        figure.savefig(path, dpi=150, metadata=FORMATS[path.suffix])
    return fonts.missing


def _over(axes: Axes, pixels: np.ndarray, weights: Float[np.ndarray, "R P"]) -> None:
    height, width, channels = pixels.shape
    rows, columns = weights.shape
    place = (0, columns, rows, 0)  # in patches
    axes.imshow(pixels[:, :, 0] if channels == 1 else pixels, cmap="gray", vmin=0, vmax=255, extent=place)
    dark = np.zeros((rows, columns, 4))
    dark[..., 3] = 0.85 * (1 - weights / max(float(weights.max()), 1e-9))
    axes.imshow(dark, extent=place, interpolation="nearest")
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    axes.add_patch(Rectangle((float(column), float(row)), 1, 1, fill=False, edgecolor=STRONGEST, linewidth=1.5))
    axes.set_aspect((height / rows) / (width / columns))
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def _outline(axes: Axes, box: Sequence[int | float], patch: int) -> None:
    left, top, right, bottom = (side / patch for side in box)
    outline = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="white", linestyle=":")
    axes.add_patch(outline)
