"""Draw attention weights over a picture, once for each output word, as PNG or SVG.

T output words, R rows and P columns of patches, H height, W width, C channels. Needs matplotlib (extra `plot`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from heedful.inspector.pictures.drawing import FAINT, FORMATS, INK, STRONGEST
from heedful.inspector.pictures.fonts import fonts_for

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
        path: The file to write; its suffix is one of `FORMATS` of `heedful.inspector.pictures.drawing`.

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
