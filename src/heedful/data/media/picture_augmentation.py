"""Augmentation of pictures: shift, mirror, zoom, one of many changes, erase, drawn from a key of seed, epoch, example.

H height, W width, C channels.
"""

import numpy as np
import torch
import torch.nn.functional as F

from heedful.config.modalities import ImageConfig
from heedful.data.media.pictures import Pixels
from heedful.data.media.trivial_augment import trivially_augmented
from heedful.data.random_numbers import Chance

ERASED_AREA = (0.02, 0.33)  # shares of the picture (Zhong et al. 2020, section 3.1)
ERASED_RATIOS = (0.3, 1 / 0.3)  # of its height to its width
ZOOM_RATIOS = (3 / 4, 4 / 3)  # of what is cut out (Szegedy et al. 2015, section 6)


def augmented(pixels: Pixels, config: ImageConfig, chance: Chance) -> Pixels:
    """Change a picture at random as the settings say; the same chance gives the same picture."""
    if config.zoom < 1:
        pixels = zoomed(pixels, config.zoom, chance)
    if config.shift:
        pixels = shifted(pixels, config.shift, chance)
    if config.flip and chance.happens(0.5):
        pixels = pixels[:, ::-1]
    if config.trivial_augment:
        pixels = trivially_augmented(pixels, config.channels, chance)
    if config.erase and chance.happens(config.erase):
        pixels = erased(pixels, chance)
    return pixels


def shifted(pixels: Pixels, most: int, chance: Chance) -> Pixels:
    """Move a picture by up to `most` pixels down or up and right or left, with black behind it."""
    height, width = pixels.shape[:2]
    down, right = chance.below(2 * most + 1), chance.below(2 * most + 1)
    black = np.zeros((height + 2 * most, width + 2 * most, pixels.shape[2]), pixels.dtype)
    black[most : most + height, most : most + width] = pixels
    return black[down : down + height, right : right + width]


def zoomed(pixels: Pixels, least: float, chance: Chance) -> Pixels:
    """Cut out a part of at least `least` of the area, of a ratio near that of the picture, and bring it to its size."""
    height, width = pixels.shape[:2]
    box = rectangle(height, width, (least, 1.0), ZOOM_RATIOS, chance)
    part = torch.tensor(np.ascontiguousarray(pixels[box])).permute(2, 0, 1)[None].float()
    whole = F.interpolate(part, (height, width), mode="bilinear", align_corners=False, antialias=True)
    return whole[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8).numpy()


def erased(pixels: Pixels, chance: Chance) -> Pixels:
    """Fill a rectangle of a picture with random pixels (Zhong et al. 2020)."""
    pixels = pixels.copy()
    box = rectangle(pixels.shape[0], pixels.shape[1], ERASED_AREA, ERASED_RATIOS, chance)
    hole = pixels[box]
    pixels[box] = chance.bytes(hole.size).reshape(hole.shape)
    return pixels


def rectangle(
    height: int, width: int, areas: tuple[float, float], ratios: tuple[float, float], chance: Chance
) -> tuple[slice, slice]:
    """Draw the place of a rectangle in a picture: its area as a share of the picture, and its ratio on a log scale."""
    area = height * width * chance.between(*areas)
    ratio = np.exp(chance.between(*np.log(ratios)))
    tall = min(height, max(1, round((area * ratio) ** 0.5)))
    wide = min(width, max(1, round((area / ratio) ** 0.5)))
    top, left = chance.below(height - tall + 1), chance.below(width - wide + 1)
    return slice(top, top + tall), slice(left, left + wide)
