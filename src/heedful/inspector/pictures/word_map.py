"""Draw words at their places in the plane, as PNG or SVG.

N words. Needs matplotlib, which comes with the extra `plot`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.figure import Figure

from heedful.errors import RunError
from heedful.inspector.pictures.drawing import FAINT, FORMATS, INK
from heedful.inspector.pictures.fonts import fonts_for

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
        path: The file to write; its suffix is one of `FORMATS` of `heedful.inspector.pictures.drawing`.

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
