"""Draw the confusion matrix of a classifier, expected classes at the left and predicted ones above, as PNG or SVG.

C classes. Needs matplotlib, which comes with the extra `plot`.
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.evaluate.class_report import ClassReport, short
from heedful.inspector.pictures.drawing import CELL, FAINT, FORMATS, INK, LONGEST, SHADES
from heedful.inspector.pictures.fonts import fonts_for
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
