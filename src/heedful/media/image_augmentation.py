"""Image augmentation by a key: shift, flip, zoom, TrivialAugment (Müller & Hutter 2021), masked patches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool

from heedful.config.modalities import ImageConfig
from heedful.media.images import Pixels, pillow
from heedful.random_numbers import PATCHES, KeyedGenerator, draw


def masked_patches(
    grid: tuple[int, int], rate: float, seed: int, epoch: int, number: int
) -> Bool[np.ndarray, "rows columns"]:
    """Choose the patches of an image to mask: `rate` of a grid of rows and columns, but at least one, and never all.

    The same seed, epoch and number of the example mask the same patches.
    """
    count = grid[0] * grid[1]
    mask = np.zeros(count, bool)
    masked = min(max(1, round(rate * count)), count - 1)
    mask[np.argsort(draw(count, seed, PATCHES, epoch, number), kind="stable")[:masked]] = True
    return mask.reshape(grid)


Change = Callable[[Any, float], Any]  # an image of Pillow and a strength to another image

SHEAR = 0.3  # of the height or width
SHIFT = 1 / 3  # of the height or width
TURN = 30  # degrees
ENHANCEMENT = 0.9  # factors go from 1 - 0.9 to 1 + 0.9
MIN_BITS = 4  # of a colour
GREY = 128


def trivially_augmented(pixels: Pixels, channels: int, chance: KeyedGenerator) -> Pixels:
    """Change an image (H W C) of 1 or 3 channels, or frames of one behind each other in C, all by the same change."""
    change, strength = CHANGES[chance.integer(len(CHANGES))], chance.between(-1, 1)
    images = np.split(pixels, pixels.shape[2] // channels, axis=2)
    return np.concatenate([changed(image, change, strength) for image in images], axis=2)


def changed(pixels: Pixels, change: Change, strength: float) -> Pixels:
    plain = np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    return np.asarray(change(pillow().fromarray(plain), strength)).reshape(pixels.shape)


def grey(image: Any) -> tuple[int, ...]:
    return (GREY,) * len(image.getbands())


def moved(image: Any, matrix: tuple[float, float, float, float, float, float]) -> Any:
    """Take each pixel (x, y) from (a x + b y + c, d x + e y + f), bilinearly."""
    library = pillow()
    method, resampling = library.Transform.AFFINE, library.Resampling.BILINEAR
    return image.transform(image.size, method, matrix, resampling, fillcolor=grey(image))


def sheared_across(image: Any, strength: float) -> Any:
    """Move rows to the right or left, the farther the farther they are from the middle."""
    slope = SHEAR * strength
    return moved(image, (1, slope, -slope * image.height / 2, 0, 1, 0))


def sheared_down(image: Any, strength: float) -> Any:
    """Move columns down or up, the farther the farther they are from the middle."""
    slope = SHEAR * strength
    return moved(image, (1, 0, 0, slope, 1, -slope * image.width / 2))


def shifted_across(image: Any, strength: float) -> Any:
    return moved(image, (1, 0, SHIFT * strength * image.width, 0, 1, 0))


def shifted_down(image: Any, strength: float) -> Any:
    return moved(image, (1, 0, 0, 0, 1, SHIFT * strength * image.height))


def turned(image: Any, strength: float) -> Any:
    return image.rotate(TURN * strength, pillow().Resampling.BILINEAR, fillcolor=grey(image))


def enhanced(name: str) -> Change:
    """Make the change of a quality of colours, by the name that it has in Pillow's ImageEnhance."""

    def change(image: Any, strength: float) -> Any:
        from PIL import ImageEnhance

        return getattr(ImageEnhance, name)(image).enhance(1 + ENHANCEMENT * strength)

    return change


def with_few_bits(image: Any, strength: float) -> Any:
    """Keep the first 4 to 8 bits of each colour."""
    from PIL import ImageOps

    return ImageOps.posterize(image, MIN_BITS + round((8 - MIN_BITS) * abs(strength)))


def solarized(image: Any, strength: float) -> Any:
    from PIL import ImageOps

    return ImageOps.solarize(image, round(256 * abs(strength)))


def stretched(image: Any, strength: float) -> Any:
    from PIL import ImageOps

    del strength
    return ImageOps.autocontrast(image)


def equalized(image: Any, strength: float) -> Any:
    """Give all brightnesses of each channel as many pixels."""
    from PIL import ImageOps

    del strength
    return ImageOps.equalize(image)


CHANGES: tuple[Change, ...] = (
    lambda image, _: image,
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


ERASED_AREA = (0.02, 0.33)  # shares of the image (Zhong et al. 2020, section 3.1)
ERASED_RATIOS = (0.3, 1 / 0.3)  # of its height to its width
ZOOM_RATIOS = (3 / 4, 4 / 3)  # of what is cut out (Szegedy et al. 2015, section 6)


def augmented(pixels: Pixels, config: ImageConfig, chance: KeyedGenerator) -> Pixels:
    """Change an image at random as the settings say; the same chance gives the same image."""
    if config.zoom < 1:
        pixels = zoomed(pixels, config.zoom, chance)
    if config.shift:
        pixels = shifted(pixels, config.shift, chance)
    if config.flip and chance.bernoulli(0.5):
        pixels = pixels[:, ::-1]
    if config.trivial_augment:
        pixels = trivially_augmented(pixels, config.channels, chance)
    if config.erase and chance.bernoulli(config.erase):
        pixels = erased(pixels, chance)
    return pixels


def shifted(pixels: Pixels, most: int, chance: KeyedGenerator) -> Pixels:
    """Move an image by up to `most` pixels down or up and right or left, with black behind it."""
    height, width = pixels.shape[:2]
    down, right = chance.integer(2 * most + 1), chance.integer(2 * most + 1)
    black = np.zeros((height + 2 * most, width + 2 * most, pixels.shape[2]), pixels.dtype)
    black[most : most + height, most : most + width] = pixels
    return black[down : down + height, right : right + width]


def zoomed(pixels: Pixels, least: float, chance: KeyedGenerator) -> Pixels:
    """Cut out a part of at least `least` of the area, of a ratio near that of the image, and bring it to its size."""
    height, width = pixels.shape[:2]
    box = rectangle(height, width, (least, 1.0), ZOOM_RATIOS, chance)
    part = torch.tensor(np.ascontiguousarray(pixels[box])).permute(2, 0, 1)[None].float()
    whole = F.interpolate(part, (height, width), mode="bilinear", align_corners=False, antialias=True)
    return whole[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8).numpy()


def erased(pixels: Pixels, chance: KeyedGenerator) -> Pixels:
    """Fill a rectangle of an image with random pixels (Zhong et al. 2020)."""
    pixels = pixels.copy()
    box = rectangle(pixels.shape[0], pixels.shape[1], ERASED_AREA, ERASED_RATIOS, chance)
    hole = pixels[box]
    pixels[box] = chance.bytes(hole.size).reshape(hole.shape)
    return pixels


def rectangle(
    height: int, width: int, areas: tuple[float, float], ratios: tuple[float, float], chance: KeyedGenerator
) -> tuple[slice, slice]:
    """Draw the place of a rectangle in an image: its area as a share of the image, and its ratio on a log scale."""
    area = height * width * chance.between(*areas)
    # On a log scale twice as tall is as likely as twice as wide.
    ratio = np.exp(chance.between(*np.log(ratios)))
    tall = min(height, max(1, round((area * ratio) ** 0.5)))
    wide = min(width, max(1, round((area / ratio) ** 0.5)))
    top, left = chance.integer(height - tall + 1), chance.integer(width - wide + 1)
    return slice(top, top + tall), slice(left, left + wide)
