"""Random changes of images: zoom, shift, flip, TrivialAugment (Müller & Hutter 2021), erasing, and masked patches.

Each change is determined by a key, so that a resumed run repeats it.
"""

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
    """Select the patches of an image to mask: a share `rate` of the grid, at least one, and never all.

    The selection is a function of the seed, the epoch and the number of the example.
    """
    count = grid[0] * grid[1]
    mask = np.zeros(count, bool)
    mask_count = min(max(1, round(rate * count)), count - 1)
    mask[np.argsort(draw(count, seed, PATCHES, epoch, number), kind="stable")[:mask_count]] = True
    return mask.reshape(grid)


Change = Callable[[Any, float], Any]  # (Pillow image, strength from -1 to 1) -> changed image

SHEAR = 0.3  # maximum, as a share of the height or width
SHIFT = 1 / 3  # maximum, as a share of the height or width
TURN = 30  # maximum, in degrees
ENHANCEMENT = 0.9  # factors go from 1 - 0.9 to 1 + 0.9
MIN_BITS = 4  # the fewest bits of a colour value that `posterize` keeps
GREY = 128  # fills the areas that a change leaves empty


def trivially_augmented(pixels: Pixels, channels: int, generator: KeyedGenerator) -> Pixels:
    """Apply a random change to an image (H W C) with 1 or 3 channels, or to all frames of a video, joined in C."""
    # One change, sampled uniformly, as is its strength: TrivialAugment needs no tuning for a data set.
    change, strength = CHANGES[generator.integer(len(CHANGES))], generator.between(-1, 1)
    images = np.split(pixels, pixels.shape[2] // channels, axis=2)
    return np.concatenate([changed(image, change, strength) for image in images], axis=2)


def changed(pixels: Pixels, change: Change, strength: float) -> Pixels:
    plain = np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    return np.asarray(change(pillow().fromarray(plain), strength)).reshape(pixels.shape)


def grey(image: Any) -> tuple[int, ...]:
    return (GREY,) * len(image.getbands())


def moved(image: Any, matrix: tuple[float, float, float, float, float, float]) -> Any:
    """Interpolate each pixel (x, y) bilinearly at (a x + b y + c, d x + e y + f), where matrix is (a, ..., f)."""
    library = pillow()
    method, resampling = library.Transform.AFFINE, library.Resampling.BILINEAR
    return image.transform(image.size, method, matrix, resampling, fillcolor=grey(image))


def enhanced(name: str) -> Change:
    """Return a change of the property, such as contrast, that a class of Pillow's ImageEnhance controls."""

    def change(image: Any, strength: float) -> Any:
        from PIL import ImageEnhance

        return getattr(ImageEnhance, name)(image).enhance(1 + ENHANCEMENT * strength)

    return change


def image_ops() -> Any:
    from PIL import ImageOps

    return ImageOps


CHANGES: tuple[Change, ...] = (
    lambda image, _: image,
    # shears around the middle row and the middle column
    lambda image, strength: moved(image, (1, SHEAR * strength, -SHEAR * strength * image.height / 2, 0, 1, 0)),
    lambda image, strength: moved(image, (1, 0, 0, SHEAR * strength, 1, -SHEAR * strength * image.width / 2)),
    # shifts
    lambda image, strength: moved(image, (1, 0, SHIFT * strength * image.width, 0, 1, 0)),
    lambda image, strength: moved(image, (1, 0, 0, 0, 1, SHIFT * strength * image.height)),
    lambda image, strength: image.rotate(TURN * strength, pillow().Resampling.BILINEAR, fillcolor=grey(image)),
    enhanced("Color"),
    enhanced("Contrast"),
    enhanced("Brightness"),
    enhanced("Sharpness"),
    lambda image, strength: image_ops().posterize(image, MIN_BITS + round((8 - MIN_BITS) * abs(strength))),
    lambda image, strength: image_ops().solarize(image, round(256 * abs(strength))),
    lambda image, _: image_ops().autocontrast(image),
    lambda image, _: image_ops().equalize(image),
)


ERASED_AREA = (0.02, 0.33)  # shares of the image (Zhong et al. 2020, section 3.1)
ERASED_RATIOS = (0.3, 1 / 0.3)  # ratios of the rectangle's height to its width
ZOOM_RATIOS = (3 / 4, 4 / 3)  # ratios of a crop's height to its width (Szegedy et al. 2015, section 6)


def augmented(pixels: Pixels, config: ImageConfig, generator: KeyedGenerator) -> Pixels:
    """Augment an image as the settings specify; the same generator gives the same image."""
    if config.zoom < 1:
        pixels = zoomed(pixels, config.zoom, generator)
    if config.shift:
        pixels = shifted(pixels, config.shift, generator)
    if config.flip and generator.bernoulli(0.5):
        pixels = pixels[:, ::-1]
    if config.trivial_augment:
        pixels = trivially_augmented(pixels, config.channels, generator)
    # Last, so that no other change alters the random pixels of the rectangle.
    if config.erase and generator.bernoulli(config.erase):
        pixels = erased(pixels, generator)
    return pixels


def shifted(pixels: Pixels, limit: int, generator: KeyedGenerator) -> Pixels:
    """Shift an image by up to `limit` pixels in each direction; the rest is black."""
    height, width = pixels.shape[:2]
    down, right = generator.integer(2 * limit + 1), generator.integer(2 * limit + 1)
    # A random crop of the padded image, as for CIFAR-10 in He et al. 2016, section 4.2.
    black = np.zeros((height + 2 * limit, width + 2 * limit, pixels.shape[2]), pixels.dtype)
    black[limit : limit + height, limit : limit + width] = pixels
    return black[down : down + height, right : right + width]


def zoomed(pixels: Pixels, min_area: float, generator: KeyedGenerator) -> Pixels:
    """Crop a rectangle of about `min_area` to 1 times the area of an image, and resize it to the full size."""
    height, width = pixels.shape[:2]
    box = rectangle(height, width, (min_area, 1.0), ZOOM_RATIOS, generator)
    # (H, W, C) -> (1, C, H, W), the order that `interpolate` expects.
    part = torch.tensor(np.ascontiguousarray(pixels[box])).permute(2, 0, 1)[None].float()
    whole = F.interpolate(part, (height, width), mode="bilinear", align_corners=False, antialias=True)
    return whole[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8).numpy()


def erased(pixels: Pixels, generator: KeyedGenerator) -> Pixels:
    """Fill a rectangle of an image with random pixels (Zhong et al. 2020)."""
    pixels = pixels.copy()
    box = rectangle(pixels.shape[0], pixels.shape[1], ERASED_AREA, ERASED_RATIOS, generator)
    hole = pixels[box]
    pixels[box] = generator.bytes(hole.size).reshape(hole.shape)
    return pixels


def rectangle(
    height: int, width: int, areas: tuple[float, float], ratios: tuple[float, float], generator: KeyedGenerator
) -> tuple[slice, slice]:
    """Sample a rectangle in an image.

    Its area is uniform in `areas`, shares of the area of the image, and its ratio of height to width log-uniform in
    `ratios`; a side that is longer than the image is shortened.
    """
    area = height * width * generator.between(*areas)
    # On a log scale, twice as tall is as likely as twice as wide.
    ratio = np.exp(generator.between(*np.log(ratios)))
    rows = min(height, max(1, round((area * ratio) ** 0.5)))
    columns = min(width, max(1, round((area / ratio) ** 0.5)))
    top, left = generator.integer(height - rows + 1), generator.integer(width - columns + 1)
    return slice(top, top + rows), slice(left, left + columns)
