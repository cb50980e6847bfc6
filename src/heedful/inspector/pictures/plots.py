"""Plot any tensor of a trace: shades of blue for tensors without negative values, orange to purple for others.

Needs matplotlib, which comes with the extra `plot`.
"""

from io import StringIO

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.errors import InputError
from heedful.inspector.capture.trace import Recorded
from heedful.inspector.pictures.drawing import FAINT, INK, SHADES
from heedful.inspector.pictures.fonts import fonts_for

ABREAST = 4  # panels
CELL, NARROW = 0.22, 0.02  # inches per position: with labels, without
LONGEST = 12.0  # inches, of a panel
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
    return min(LONGEST, max(1.0, places * (CELL if named(names) else NARROW)))


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
