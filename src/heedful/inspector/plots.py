"""Plots as PNG or SVG: attention, trace tensors, confusion matrices and word maps, in fonts that have the glyphs.

matplotlib's default font does not have Chinese, Japanese or Korean glyphs. Functions that write a file return the
characters that no installed font has.

T target words, S source words, H height, W width, C channels, R rows and P columns of patches, N words.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.patches import Rectangle

from heedful.errors import InputError, RunError
from heedful.inspector.capture.trace import Recorded
from heedful.metrics.classes import ClassReport, short
from heedful.wording import counted

FORMATS = {".png": {}, ".svg": {"Date": None}}  # suffix: metadata; without a date, the same plot gives the same file

FONT = "DejaVu Sans"  # comes with matplotlib
PLACEHOLDERS = "Last Resort"  # comes with matplotlib, too: an empty box for every character

INK, FAINT = "#1c2430", "#667080"
DOT = "#1f66ad"
STRONGEST = "#d55e00"  # vermilion on blue: distinct for every kind of colour vision (Okabe & Ito 2008)
SHADES = LinearSegmentedColormap.from_list("attention", ["#f1f5f9", "#c3d7ee", "#6ea3d8", "#1f66ad", "#0a326b"])

# Lengths are in inches, unless noted otherwise.
CELL = 0.44  # smaller if a sentence would need more than MAX_SIDE
MAX_SIDE = 40.0
MAX_LABEL = 24  # characters
IMAGES_IN_ROW, IMAGE_SIDE = 6, 1.7
MAX_NUMBERS = 60  # maximum number of classes for which the cells of a confusion matrix have room for counts
DARK = 0.5  # share of a row above which white numbers are more legible
MIN_CELLS = 5  # minimum width of the figure of a matrix, in cells, so that the title fits
MAP_SIDE = 8.0
PANELS_IN_ROW = 4
TENSOR_CELL, NARROW = 0.22, 0.02  # per position of a tensor, with and without labels
MAX_PANEL = 12.0
TENSOR_LABEL = 12  # characters


class Fonts(NamedTuple):
    """Font families for a text, in order of preference, and the characters that no installed font has."""

    families: list[str]
    missing: set[str]


def fonts_for(text: str) -> Fonts:
    """Select a few installed fonts that together cover the characters of a text."""
    families, missing = [FONT], set(text) - _glyphs(findfont(FONT))
    candidates = sorted(
        {
            (font.name, font.fname)
            for font in fontManager.ttflist
            if font.style == "normal" and font.weight == 400 and not font.name.startswith(PLACEHOLDERS)
        }
    )
    # Greedily take the font that has the most missing characters: this needs few fonts, but not always the fewest.
    while missing:
        name, path = max(candidates, key=lambda font: len(missing & _glyphs(font[1])))
        if not missing & _glyphs(path):
            break
        families.append(name)
        missing -= _glyphs(path)
    return Fonts(families, missing)


@cache
def _glyphs(path: str) -> frozenset[str]:
    return frozenset(map(chr, FT2Font(path).get_charmap()))


def _style(fonts: Fonts) -> AbstractContextManager[None]:
    # A fixed salt for the ids of an SVG, so that the same plot gives the same file.
    return rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"})


def _boxed(text: str, missing: set[str]) -> str:
    """Replace each character that no font can draw with a box."""
    return "".join("□" if character in missing else character for character in text)


@dataclass(frozen=True)
class HeatMap:
    """Attention weights of target words on source words, from 0 to 1, with the labels and titles of a heat map."""

    weights: Float[np.ndarray, "T S"]
    source: Sequence[str]
    target: Sequence[str]
    title: str
    subtitle: str


def draw(heat_map: HeatMap, path: Path) -> set[str]:
    """Write a heat map of attention weights to an image file, with the largest weight of each target word outlined.

    Words with a character that no installed font has are drawn as their number, from 1.
    """
    weights = heat_map.weights
    fonts = fonts_for("".join([*heat_map.source, *heat_map.target, heat_map.title, heat_map.subtitle]))
    source, target = (_printable(words, fonts.missing) for words in (heat_map.source, heat_map.target))
    height, width = weights.shape
    cell = min(CELL, MAX_SIDE / max(height, width))
    with _style(fonts):
        figure = Figure(figsize=(width * cell, height * cell))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.pcolormesh(weights, cmap=SHADES, vmin=0, vmax=weights.max(), edgecolors="white", linewidth=1.2)
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.spines[:].set_visible(False)
        for row, column in enumerate(weights.argmax(1)):
            box = Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, fill=False, edgecolor=STRONGEST, linewidth=1.8)
            axes.add_patch(box)

        # Words may contain $, which matplotlib would otherwise read as mathematics.
        slanted = {"rotation": 45, "rotation_mode": "anchor", "ha": "left", "va": "center"}
        axes.set_xticks(np.arange(width) + 0.5, source, fontsize=cell * 26, parse_math=False, **slanted)
        axes.set_yticks(np.arange(height) + 0.5, target, fontsize=cell * 26, parse_math=False)
        axes.tick_params(length=0, pad=5, top=True, labeltop=True, bottom=False, labelbottom=False)
        for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
            label.set_color(FAINT if label.get_text().startswith("<") else INK)

        title, subtitle = (_boxed(text, fonts.missing) for text in (heat_map.title, heat_map.subtitle))
        heading = axes.set_title(title, loc="left", fontsize=15, pad=30, parse_math=False)
        small = {"textcoords": "offset points", "va": "top", "fontsize": 10, "color": FAINT, "parse_math": False}
        axes.annotate(subtitle, xy=(0, 0), xycoords=heading, xytext=(0, -5), **small)
        if fonts.missing:
            note = "A number replaces a word that no font on this machine can draw."
            axes.annotate(note, xy=(0, 0), xycoords="axes fraction", xytext=(0, -8), **small)

        # A slim colour bar to the right of the first rows.
        width, height = figure.get_size_inches()
        share, largest = min(1.0, 4 * CELL / height), float(weights.max())
        bar = axes.inset_axes((1 + 0.25 / width, 1 - share, 0.11 / width, share))
        shades = ScalarMappable(Normalize(0, largest), SHADES)
        colorbar = figure.colorbar(shades, cax=bar, ticks=[0, largest / 2, largest], format="%.2f")
        colorbar.outline.set_visible(False)
        bar.tick_params(length=0, labelsize=8, labelcolor=FAINT)
        bar.set_ylabel("attention weight", fontsize=8, color=FAINT)
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.25, metadata=FORMATS[path.suffix])
    return fonts.missing


def _printable(words: Sequence[str], missing: set[str]) -> list[str]:
    labels = (word if len(word) <= MAX_LABEL else word[: MAX_LABEL - 1] + "…" for word in words)
    return [
        str(number) if missing.intersection(word) else label
        for number, (word, label) in enumerate(zip(words, labels, strict=True), start=1)
    ]


@dataclass(frozen=True)
class ImageMaps:
    """An 8-bit image, and a map of attention weights over its patches for each output word.

    `boxes` maps the index of a word, from 0, to the box of its object, if known: left, top, right, bottom in pixels.
    """

    pixels: UInt8[np.ndarray, "H W C"]
    maps: Float[np.ndarray, "T R P"]
    words: Sequence[str]
    title: str
    subtitle: str
    boxes: Mapping[int, Sequence[int | float]] = field(default_factory=dict)


def draw_maps(image: ImageMaps, path: Path) -> set[str]:
    """Draw the image once per word, dark where the word's attention is low, with its largest weight and box outlined.

    Words with a character that no installed font has are drawn as their number, from 1.
    """
    fonts = fonts_for("".join([*image.words, image.title, image.subtitle]))
    columns = min(IMAGES_IN_ROW, len(image.words))
    rows = math.ceil(len(image.words) / columns)
    with _style(fonts):
        figure = Figure(figsize=(columns * IMAGE_SIDE, rows * (IMAGE_SIDE + 0.25) + 0.7), layout="constrained")
        figure.suptitle(f"{image.title}\n{image.subtitle}", fontsize=11, parse_math=False)
        grid = list(figure.subplots(rows, columns, squeeze=False).flat)
        for number, (axes, word, weights) in enumerate(zip(grid, image.words, image.maps, strict=False)):
            _draw_over(axes, image.pixels, weights)
            if number in image.boxes:
                patch = image.pixels.shape[0] // weights.shape[0]
                left, top, right, bottom = (side / patch for side in image.boxes[number])
                size = right - left, bottom - top
                axes.add_patch(Rectangle((left, top), *size, fill=False, edgecolor="white", linestyle=":"))
            label = str(number + 1) if fonts.missing.intersection(word) else word
            axes.set_title(f"{label} ({weights.max():.2f})", fontsize=9, parse_math=False)
        for axes in grid[len(image.words) :]:
            axes.set_visible(False)
        figure.savefig(path, dpi=150, metadata=FORMATS[path.suffix])
    return fonts.missing


def _draw_over(axes: Axes, pixels: np.ndarray, weights: Float[np.ndarray, "R P"]) -> None:
    height, width, channels = pixels.shape
    rows, columns = weights.shape
    extent = (0, columns, rows, 0)  # in patches
    axes.imshow(pixels[:, :, 0] if channels == 1 else pixels, cmap="gray", vmin=0, vmax=255, extent=extent)
    # A black layer over the image, transparent where the weight is largest: (rows, columns, RGBA).
    dark = np.zeros((rows, columns, 4))
    dark[..., 3] = 0.85 * (1 - weights / max(float(weights.max()), 1e-9))
    axes.imshow(dark, extent=extent, interpolation="nearest")
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    axes.add_patch(Rectangle((float(column), float(row)), 1, 1, fill=False, edgecolor=STRONGEST, linewidth=1.5))
    # The unit of both axes is a patch, which is a rectangle of pixels.
    axes.set_aspect((height / rows) / (width / columns))
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def draw_confusion(report: ClassReport, title: str, path: Path) -> set[str]:
    """Draw a confusion matrix; the shade of a cell is its share of the expected class (the row).

    Classes with a character that no installed font has are drawn as their number, from 1.
    """
    fonts = fonts_for("".join([*report.labels, title]))

    def drawable(label: str) -> str:
        return str(1 + report.labels.index(label)) if fonts.missing.intersection(label) else short(label)

    names = list(map(drawable, report.labels))
    size = len(names)
    cell = min(1.6 * CELL, MAX_SIDE / size)
    with _style(fonts):
        figure = Figure(figsize=(max(size, MIN_CELLS) * cell, size * cell))
        axes = figure.add_axes((0, 0, min(1.0, size / MIN_CELLS), 1))
        matrix = report.matrix
        shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
        axes.pcolormesh(shares, cmap=SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=1.2)
        axes.set(xlim=(0, size), ylim=(size, 0))
        axes.spines[:].set_visible(False)
        for (row, column), count in np.ndenumerate(matrix) if size <= MAX_NUMBERS else ():
            shade = "white" if shares[row, column] > DARK else INK
            middle = (column + 0.5, row + 0.5)
            axes.text(*middle, f"{count:,}", ha="center", va="center", color=shade, fontsize=min(11, cell * 14))

        middles = np.arange(size) + 0.5
        fontsize = min(11, cell * 20)
        slanted = {"rotation": 45, "rotation_mode": "anchor", "ha": "right", "va": "center"}
        axes.set_xticks(middles, names, fontsize=fontsize, parse_math=False, **slanted)
        axes.set_yticks(middles, names, fontsize=fontsize, parse_math=False)
        axes.tick_params(length=0, pad=5, labelcolor=INK)
        axes.set_xlabel("predicted", color=FAINT)
        axes.set_ylabel("expected", color=FAINT)

        absent = f"\nwithout an example: {', '.join(map(drawable, report.absent))}" if report.absent else ""
        subtitle = f"{counted(int(matrix.sum()), report.unit)}; rows: expected, columns: predicted{absent}"
        heading = f"{_boxed(title, fonts.missing)}\n{subtitle}"
        figure.text(0, 1 + 0.2 / figure.get_size_inches()[1], heading, fontsize=11, parse_math=False)
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.25, metadata=FORMATS[path.suffix])
    return fonts.missing


@dataclass(frozen=True)
class WordMap:
    """Words with their positions in a plane."""

    places: Float[np.ndarray, "N 2"]
    words: Sequence[str]
    axes: tuple[str, str]  # labels
    title: str


def draw_words(word_map: WordMap, path: Path) -> set[str]:
    """Write a map with a dot and a label for each word to an image file."""
    fonts = fonts_for("".join([*word_map.words, word_map.title]))
    size = float(np.clip(14 - len(word_map.words) / 25, 6, 11))
    with _style(fonts):
        figure = Figure(figsize=(MAP_SIDE, MAP_SIDE), layout="constrained")
        axes = figure.subplots()
        axes.scatter(*word_map.places.T, s=9, color=DOT, linewidths=0)
        for word, position in zip(word_map.words, word_map.places, strict=True):
            axes.annotate(word, position, xytext=(3, 2), textcoords="offset points", fontsize=size, parse_math=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=7, labelcolor=FAINT)
        axes.grid(color="#e4e9ef", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel(word_map.axes[0], fontsize=8, color=FAINT)
        axes.set_ylabel(word_map.axes[1], fontsize=8, color=FAINT)
        axes.set_title(word_map.title, loc="left", fontsize=12, parse_math=False)
        try:
            figure.savefig(path, dpi=160, metadata=FORMATS[path.suffix])
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    return fonts.missing


def plot(recorded: Recorded, head: int | None = None) -> Figure:
    """Plot a tensor of one to three dimensions: one panel per head, or only that of `head`."""
    values, labels = recorded.values, list(recorded.labels)
    if values.ndim == 1:
        values, labels = values[None], [[""], *labels]
    panels = values if values.ndim == 3 else values[None]
    if head is not None and not 0 <= head < len(panels):
        raise InputError(f"head {head}: {recorded.name} has {counted(len(panels), 'heads')}, counted from 0")
    numbers = range(len(panels)) if head is None else [head]
    columns = min(PANELS_IN_ROW, len(numbers))
    rows = -(-len(numbers) // columns)
    height, width = (
        min(MAX_PANEL, max(1.0, panels.shape[axis] * (TENSOR_CELL if _have_names(names) else NARROW)))
        for axis, names in ((1, labels[-2]), (2, labels[-1]))
    )
    fonts = fonts_for("".join(name for names in labels for name in names) + recorded.name)
    with _style(fonts):
        figure = Figure(figsize=(columns * (width + 0.9), rows * (height + 0.9)), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, number in zip(grid, numbers, strict=False):
            panel = panels[number]
            # If any value is negative, diverging colours are symmetric around 0, so that 0 has the neutral colour.
            largest, is_signed = float(np.abs(panel).max()) or 1.0, bool((panel < 0).any())
            lowest, colours = (-largest, "PuOr") if is_signed else (0, SHADES)
            axes.pcolormesh(panel, cmap=colours, vmin=lowest, vmax=largest)
            axes.invert_yaxis()
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelsize=6)
            axes.set_xticks([])
            axes.set_yticks([])
            row_labels, column_labels = ([name[:TENSOR_LABEL] for name in names] for names in labels[-2:])
            if _have_names(labels[-1]):
                axes.set_xticks(np.arange(len(column_labels)) + 0.5, column_labels, rotation=90, parse_math=False)
            if _have_names(labels[-2]):
                axes.set_yticks(np.arange(len(row_labels)) + 0.5, row_labels, parse_math=False)
            if values.ndim == 3:
                axes.set_title(f"{recorded.axes[0]} {number}", fontsize=8, color=FAINT)
        for axes in grid[len(numbers) :]:
            axes.set_visible(False)
        figure.suptitle(recorded.name, fontsize=11, parse_math=False)
    return figure


def _have_names(labels: Iterable[str]) -> bool:
    return any(not label.isdigit() for label in labels)


def svg(figure: Figure) -> str:
    """Render a matplotlib figure as an SVG element, to embed in an HTML page."""
    text = StringIO()
    with rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    # HTML does not allow the XML declaration before the element.
    return text.getvalue()[text.getvalue().index("<svg") :]
