"""Image settings in Hugging Face files: size, filter, crop, and the mean and standard deviation of pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config.modalities import ImageConfig
from heedful.convert.settings import read_config
from heedful.errors import InputError

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"
RESAMPLES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's filter numbers
STEPS = ("do_resize", "do_rescale", "do_normalize")  # which heedful applies to every image


@dataclass(frozen=True)
class Defaults:
    """Defaults of a Hugging Face image processor, for settings that a model's file lacks."""

    model: str  # type of the models that use the processor, with an article, for notes
    crop: bool
    resample: int  # Pillow's number of the filter
    mean: tuple[float, ...]
    std: tuple[float, ...]


VIT = Defaults("a ViT", crop=False, resample=2, mean=(0.5,), std=(0.5,))
CLIP = Defaults(
    "a CLIP",
    crop=True,
    resample=3,
    mean=(0.48145466, 0.4578275, 0.40821073),  # of the pixels in CLIP's training
    std=(0.26862954, 0.26130258, 0.27577711),
)


def image_settings(folder: Path, size: tuple[int, int], defaults: Defaults) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the image preprocessing of a model that reads images of `size`, (height, width).

    Return the settings as keys of [image], and notes for the user.
    """
    # Models with several processors, such as one for texts and one for images, may have all settings in one file.
    file, settings = folder / PREPROCESSOR, {}
    if file.is_file():
        settings = read_config(folder, PREPROCESSOR)
    elif (folder / PROCESSOR).is_file():
        file, settings = folder / PROCESSOR, read_config(folder, PROCESSOR).get("image_processor")
        settings = settings if isinstance(settings, dict) else {}
    whole = {"height": size[0], "width": size[1]}
    crop = bool(settings.get("do_center_crop", defaults.crop))
    cut = _sides(settings.get("crop_size" if crop else "size", whole))
    scaled = _sides(settings.get("size", whole))
    resample = settings.get("resample", defaults.resample)
    off = [step for step in STEPS if not settings.get(step, True)]
    problems = [f"{step} is false, but heedful always applies this step" for step in off]
    if cut != size:
        problems.append(f"images are resized to {cut[0]} x {cut[1]} pixels, but the model reads {size[0]} x {size[1]}")
    if crop and scaled != cut:
        problems.append(
            f"images are scaled to {scaled[0]} x {scaled[1]} pixels before {cut[0]} x {cut[1]} are cropped, but "
            "heedful scales them to the crop size"
        )
    if abs(255 * settings.get("rescale_factor", 1 / 255) - 1) > 1e-3:
        problems.append(f"rescale_factor is {settings['rescale_factor']}, but pixels in heedful range from 0 to 1")
    if resample not in RESAMPLES:
        problems.append(f"resample is {resample}, but heedful has only {', '.join(RESAMPLES.values())}")
    if problems:
        raise InputError(f"{file}: this model cannot be converted: {'; '.join(problems)}")
    # A size with a height and a width squashes images; a single number scales them until the shorter side fits.
    squash = isinstance(settings.get("size"), Mapping) and "height" in settings["size"]
    mean, std = settings.get("image_mean", defaults.mean), settings.get("image_std", defaults.std)
    image = {
        "size": list(size),
        "resize": "crop" if crop and not squash else "squash",
        "resample": RESAMPLES[resample],
        "mean": list(mean) if isinstance(mean, list | tuple) else [mean],
        "std": list(std) if isinstance(std, list | tuple) else [std],
    }
    note = f"{PREPROCESSOR} is missing: images are preprocessed as for {defaults.model}"
    return image, () if settings else (note,)


def preprocessor(image: ImageConfig) -> dict[str, Any]:
    whole = {"height": image.size[0], "width": image.size[1]}
    # heedful has one mean for all channels or one per channel; transformers needs one per channel.
    shared = {
        "do_resize": True,
        "resample": {name: number for number, name in RESAMPLES.items()}[image.resample],
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(image.mean) * (image.channels if len(image.mean) == 1 else 1),
        "image_std": list(image.std) * (image.channels if len(image.std) == 1 else 1),
    }
    if image.resize == "squash":
        return {"image_processor_type": "ViTImageProcessor", "size": whole, "do_center_crop": False, **shared}
    cut = {"size": {"shortest_edge": image.size[0]}, "do_center_crop": True, "crop_size": whole}
    return {"image_processor_type": "CLIPImageProcessor", **cut, **shared, "do_convert_rgb": True}


def _sides(size: Any) -> tuple[Any, Any]:
    """Return the height and width of a size given as one number, two numbers or a table."""
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        return size.get("height", edge), size.get("width", edge)
    return tuple(size) if isinstance(size, list) else (size, size)
