"""Settings of images in the files of Hugging Face: size, filter, cut, and the mean and deviation of pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config.modalities import ImageConfig
from heedful.convert.settings import read_config
from heedful.errors import InputError

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"
RESAMPLES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers of the filters
STEPS = ("do_resize", "do_rescale", "do_normalize")  # that heedful takes with every image


@dataclass(frozen=True)
class Defaults:
    """Defaults of an image processor of Hugging Face, for what the file of a model does not say."""

    model: str  # whose processor that is
    crop: bool
    resample: int  # number of the filter
    mean: tuple[float, ...]
    std: tuple[float, ...]


VIT = Defaults("a ViT", crop=False, resample=2, mean=(0.5,), std=(0.5,))
CLIP = Defaults(
    "a CLIP",
    crop=True,
    resample=3,
    mean=(0.48145466, 0.4578275, 0.40821073),  # of the pixels that CLIP has seen
    std=(0.26862954, 0.26130258, 0.27577711),
)


def picture_settings(folder: Path, size: tuple[int, int], defaults: Defaults) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read how images are brought to the size of a model, as keys of [image], and notes for the user."""
    place, settings = _settings(folder)
    whole = {"height": size[0], "width": size[1]}
    crop = bool(settings.get("do_center_crop", defaults.crop))
    cut = _sides(settings.get("crop_size" if crop else "size", whole))
    scaled = _sides(settings.get("size", whole))
    resample = settings.get("resample", defaults.resample)
    off = [step for step in STEPS if not settings.get(step, True)]
    problems = [f"{step} is false, and heedful takes this step always" for step in off]
    if cut != size:
        problems.append(
            f"pictures are brought to {cut[0]} x {cut[1]} pixels, and the model reads {size[0]} x {size[1]}"
        )
    if crop and scaled != cut:
        problems.append(
            f"pictures are scaled to {scaled[0]} x {scaled[1]} pixels before {cut[0]} x {cut[1]} are cut out, and "
            "heedful scales them to the size that it cuts out"
        )
    if abs(255 * settings.get("rescale_factor", 1 / 255) - 1) > 1e-3:
        problems.append(f"rescale_factor is {settings['rescale_factor']}, and heedful's pixels go from 0 to 1")
    if resample not in RESAMPLES:
        problems.append(f"resample is {resample}, and heedful has {', '.join(RESAMPLES.values())}")
    if problems:
        raise InputError(f"{place}: this model cannot be converted: {'; '.join(problems)}")
    # A size of a height and a width squashes images; one number scales them until the shorter side fits.
    squash = isinstance(settings.get("size"), Mapping) and "height" in settings["size"]
    mean, std = settings.get("image_mean", defaults.mean), settings.get("image_std", defaults.std)
    image = {
        "size": list(size),
        "resize": "crop" if crop and not squash else "squash",
        "resample": RESAMPLES[resample],
        "mean": list(mean) if isinstance(mean, list | tuple) else [mean],
        "std": list(std) if isinstance(std, list | tuple) else [std],
    }
    note = f"no {PREPROCESSOR} says how pictures are read: they are read as those of {defaults.model} usually are"
    return image, () if settings else (note,)


def preprocessor(image: ImageConfig) -> dict[str, Any]:
    """The contents of preprocessor_config.json for images that are read as the settings say."""
    whole = {"height": image.size[0], "width": image.size[1]}
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


def _settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The file of the settings of images, and the settings in it; none where there is no such file."""
    if (folder / PREPROCESSOR).is_file():
        return folder / PREPROCESSOR, read_config(folder, PREPROCESSOR)
    if not (folder / PROCESSOR).is_file():
        return folder / PREPROCESSOR, {}
    settings = read_config(folder, PROCESSOR).get("image_processor")
    return folder / PROCESSOR, settings if isinstance(settings, dict) else {}


def _sides(size: Any) -> tuple[Any, Any]:
    """Height and width of a size, which files write as one number, as two, or as a table."""
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        return size.get("height", edge), size.get("width", edge)
    return tuple(size) if isinstance(size, list) else (size, size)
