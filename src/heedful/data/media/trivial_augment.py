"""TrivialAugment: one random change of form or colour for each picture (Müller & Hutter 2021).

The strength of a change is from -1 to 1. The ranges are those of RandAugment (Cubuk et al. 2020), which the paper calls
RA; of a part that comes into view nothing is known, and it is grey.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from heedful.data.media.pictures import Pixels, pillow
from heedful.data.random_numbers import Chance

Change = Callable[[Any, float], Any]  # a picture of Pillow and a strength to another picture

SHEAR = 0.3  # of the height or width
SHIFT = 1 / 3  # of the height or width
TURN = 30  # degrees
ENHANCEMENT = 0.9  # factors go from 1 - 0.9 to 1 + 0.9
FEWEST_BITS = 4  # of a colour
GREY = 128


def trivially_augmented(pixels: Pixels, channels: int, chance: Chance) -> Pixels:
    """Change a picture (H W C) of 1 or 3 channels, or frames of one behind each other in C, all by the same change."""
    change, strength = CHANGES[chance.below(len(CHANGES))], chance.between(-1, 1)
    pictures = np.split(pixels, pixels.shape[2] // channels, axis=2)
    return np.concatenate([changed(picture, change, strength) for picture in pictures], axis=2)


def changed(pixels: Pixels, change: Change, strength: float) -> Pixels:
    """Apply a change to a picture of 1 or 3 channels."""
    plain = np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    return np.asarray(change(pillow().fromarray(plain), strength)).reshape(pixels.shape)


def identical(picture: Any, strength: float) -> Any:
    """Leave a picture as it is."""
    del strength
    return picture


def grey(picture: Any) -> tuple[int, ...]:
    """Return the grey of what comes into view, with as many channels as a picture."""
    return (GREY,) * len(picture.getbands())


def moved(picture: Any, matrix: tuple[float, float, float, float, float, float]) -> Any:
    """Take each pixel (x, y) from (a x + b y + c, d x + e y + f), bilinearly."""
    library = pillow()
    method, resampling = library.Transform.AFFINE, library.Resampling.BILINEAR
    return picture.transform(picture.size, method, matrix, resampling, fillcolor=grey(picture))


def sheared_across(picture: Any, strength: float) -> Any:
    """Move rows to the right or left, the farther the farther they are from the middle."""
    slope = SHEAR * strength
    return moved(picture, (1, slope, -slope * picture.height / 2, 0, 1, 0))


def sheared_down(picture: Any, strength: float) -> Any:
    """Move columns down or up, the farther the farther they are from the middle."""
    slope = SHEAR * strength
    return moved(picture, (1, 0, 0, slope, 1, -slope * picture.width / 2))


def shifted_across(picture: Any, strength: float) -> Any:
    """Move a picture to the right or left."""
    return moved(picture, (1, 0, SHIFT * strength * picture.width, 0, 1, 0))


def shifted_down(picture: Any, strength: float) -> Any:
    """Move a picture down or up."""
    return moved(picture, (1, 0, 0, 0, 1, SHIFT * strength * picture.height))


def turned(picture: Any, strength: float) -> Any:
    """Turn a picture around its middle."""
    return picture.rotate(TURN * strength, pillow().Resampling.BILINEAR, fillcolor=grey(picture))


def enhanced(name: str) -> Change:
    """Make the change of a quality of colours, by the name that it has in Pillow's ImageEnhance."""

    def change(picture: Any, strength: float) -> Any:
        from PIL import ImageEnhance

        return getattr(ImageEnhance, name)(picture).enhance(1 + ENHANCEMENT * strength)

    return change


def with_few_bits(picture: Any, strength: float) -> Any:
    """Keep the first 4 to 8 bits of each colour."""
    from PIL import ImageOps

    return ImageOps.posterize(picture, FEWEST_BITS + round((8 - FEWEST_BITS) * abs(strength)))


def solarized(picture: Any, strength: float) -> Any:
    """Invert what is brighter than a threshold."""
    from PIL import ImageOps

    return ImageOps.solarize(picture, round(256 * abs(strength)))


def stretched(picture: Any, strength: float) -> Any:
    """Stretch each channel to its full range."""
    from PIL import ImageOps

    del strength
    return ImageOps.autocontrast(picture)


def equalized(picture: Any, strength: float) -> Any:
    """Give all brightnesses of each channel as many pixels."""
    from PIL import ImageOps

    del strength
    return ImageOps.equalize(picture)


CHANGES: tuple[Change, ...] = (
    identical,
    sheared_across,
    sheared_down,
    shifted_across,
    shifted_down,
    turned,
    enhanced("Color"),
    enhanced("Contrast"),
    enhanced("Brightness"),
    enhanced("Sharpness"),
    with_few_bits,
    solarized,
    stretched,
    equalized,
)
