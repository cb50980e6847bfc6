"""Plots of a trace's tensors, confusion matrices and word maps, as PNG or SVG, in a font that has the glyphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.errors import InputError, RunError
from heedful.inspector.capture.trace import Recorded
from heedful.inspector.plots.attention import CELL, FAINT, FORMATS, INK, LONGEST, SHADES
from heedful.inspector.plots.fonts import fonts_for
from heedful.metrics.classes import ClassReport, short
from heedful.wording import counted

MOST_NUMBERS = 60  # classes, up to which a cell has room for its count
DARK = 0.5  # share of a row, from which white numbers are read better
NARROWEST = 5  # cells: a picture with fewer is as wide, so that its title fits


def draw_confusion(report: ClassReport, title: str, path: Path) -> set[str]:
    """Draw a confusion matrix; each cell has its count, and its shade is the share of the expected class (the row).

    Args:
        report: The report of the classifier.
        title: The title, such as the name of the model.
        path: The file to write; its suffix is one of `FORMATS`.

    Returns:
        The characters that no installed font has. Classes with such a character are drawn as their number, from 1.
    """
    fonts = fonts_for("".join([*report.labels, title]))

    def drawable(label: str) -> str:
        return str(1 + report.labels.index(label)) if fonts.missing.intersection(label) else short(label)

    names = list(map(drawable, report.labels))
    title = "".join("□" if character in fonts.missing else character for character in title)
    size = len(names)
    cell = min(1.6 * CELL, LONGEST / size)
    with rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(max(size, NARROWEST) * cell, size * cell))
        axes = figure.add_axes((0, 0, min(1.0, size / NARROWEST), 1))
        _cells(axes, report.matrix, cell)
        _labels(axes, names, cell)
        absent = f"\nwithout an example: {', '.join(map(drawable, report.absent))}" if report.absent else ""
        subtitle = f"{counted(int(report.matrix.sum()), report.unit)}; rows: expected, columns: predicted{absent}"
        figure.text(0, 1 + 0.2 / figure.get_size_inches()[1], f"{title}\n{subtitle}", fontsize=11, parse_math=False)
        figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.25, metadata=FORMATS[path.suffix])
    return fonts.missing


def _cells(axes: Axes, matrix: np.ndarray, cell: float) -> None:
    size = len(matrix)
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    axes.pcolormesh(shares, cmap=SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=1.2)
    axes.set(xlim=(0, size), ylim=(size, 0))
    axes.spines[:].set_visible(False)
    for (row, column), count in np.ndenumerate(matrix) if size <= MOST_NUMBERS else ():
        shade = "white" if shares[row, column] > DARK else INK
        place = (column + 0.5, row + 0.5)
        axes.text(*place, f"{count:,}", ha="center", va="center", color=shade, fontsize=min(11, cell * 14))


def _labels(axes: Axes, names: list[str], cell: float) -> None:
    places = np.arange(len(names)) + 0.5
    fontsize = min(11, cell * 20)
    slanted = {"rotation": 45, "rotation_mode": "anchor", "ha": "right", "va": "center"}
    axes.set_xticks(places, names, fontsize=fontsize, parse_math=False, **slanted)
    axes.set_yticks(places, names, fontsize=fontsize, parse_math=False)
    axes.tick_params(length=0, pad=5, labelcolor=INK)
    axes.set_xlabel("predicted", color=FAINT)
    axes.set_ylabel("expected", color=FAINT)


SIZE = 8.0  # inches
DOT = "#1f66ad"


@dataclass(frozen=True)
class WordMap:
    """Words with their places in a plane, for a picture."""

    places: Float[np.ndarray, "N 2"]
    words: Sequence[str]
    axes: tuple[str, str]  # what they mean
    title: str


def draw_words(picture: WordMap, path: Path) -> set[str]:
    """Draw a dot and a label for each word to a PNG or SVG file.

    Args:
        picture: Words and places.
        path: The file to write; its suffix is one of `FORMATS` of `heedful.inspector.plots.attention`.

    Returns:
        The characters that no installed font has.

    Raises:
        RunError: The file cannot be written.
    """
    fonts = fonts_for("".join([*picture.words, picture.title]))
    size = float(np.clip(14 - len(picture.words) / 25, 6, 11))
    with rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(SIZE, SIZE), layout="constrained")
        axes = figure.subplots()
        axes.scatter(*picture.places.T, s=9, color=DOT, linewidths=0)
        for word, place in zip(picture.words, picture.places, strict=True):
            axes.annotate(word, place, xytext=(3, 2), textcoords="offset points", fontsize=size, parse_math=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=7, labelcolor=FAINT)
        axes.grid(color="#e4e9ef", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel(picture.axes[0], fontsize=8, color=FAINT)
        axes.set_ylabel(picture.axes[1], fontsize=8, color=FAINT)
        axes.set_title(picture.title, loc="left", fontsize=12, parse_math=False)
        try:
            figure.savefig(path, dpi=160, metadata=FORMATS[path.suffix])
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    return fonts.missing


ABREAST = 4  # panels
TENSOR_CELL, NARROW = 0.22, 0.02  # inches per position: with labels, without
LONGEST_TENSOR = 12.0  # inches, of a panel
NAMES = 12  # characters


def plot(recorded: Recorded, head: int | None = None) -> Figure:
    """Plot a recorded tensor with matplotlib: a panel for each head, rows and columns for its last two axes.

    Args:
        recorded: a tensor of one to three dimensions.
        head: number of the only head to draw, from 0; None: all heads.

    Raises:
        InputError: there is no such head.
    """
    values, labels = recorded.values, list(recorded.labels)
    if values.ndim == 1:
        values, labels = values[None], [[""], *labels]
    panels = values if values.ndim == 3 else values[None]
    if head is not None and not 0 <= head < len(panels):
        raise InputError(f"head {head}: {recorded.name} has {len(panels)}, counted from 0")
    chosen = range(len(panels)) if head is None else [head]
    columns = min(ABREAST, len(chosen))
    rows = -(-len(chosen) // columns)
    width, height = (size(panels.shape[axis], labels[axis - 3]) for axis in (2, 1))
    fonts = fonts_for("".join(name for names in labels for name in names) + recorded.name)
    with rc_context({"font.family": fonts.families, "text.color": INK, "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(columns * (width + 0.9), rows * (height + 0.9)), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, number in zip(grid, chosen, strict=False):
            panel(axes, panels[number], labels[-2], labels[-1])
            if values.ndim == 3:
                axes.set_title(f"{recorded.axes[0]} {number}", fontsize=8, color=FAINT)
        for axes in grid[len(chosen) :]:
            axes.set_visible(False)
        figure.suptitle(recorded.name, fontsize=11, parse_math=False)
    return figure


def size(places: int, names: list[str]) -> float:
    """Length of an axis in inches, given its number of positions and their labels."""
    return min(LONGEST_TENSOR, max(1.0, places * (TENSOR_CELL if named(names) else NARROW)))


def named(names: list[str]) -> bool:
    """True if at least one label of an axis is a name, not only a number."""
    return any(not name.isdigit() for name in names)


def panel(axes: Axes, values: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """Draw one matrix with row and column labels into the axes of a figure."""
    largest = float(np.abs(values).max()) or 1.0
    signed = bool((values < 0).any())
    axes.pcolormesh(values, cmap="PuOr" if signed else SHADES, vmin=-largest if signed else 0, vmax=largest)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=6)
    axes.set_xticks([])
    axes.set_yticks([])
    if named(columns):
        places = np.arange(len(columns)) + 0.5
        axes.set_xticks(places, [name[:NAMES] for name in columns], rotation=90, parse_math=False)
    if named(rows):
        axes.set_yticks(np.arange(len(rows)) + 0.5, [name[:NAMES] for name in rows], parse_math=False)


def svg(figure: Figure) -> str:
    """Render a matplotlib figure as an SVG element, to embed in an HTML page."""
    text = StringIO()
    with rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
