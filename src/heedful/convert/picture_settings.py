"""Settings of pictures in the files of Hugging Face: size, filter, cut, and the mean and deviation of pixels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.config.modalities import ImageConfig
from heedful.convert.settings import read_config
from heedful.errors import InputError

PREPROCESSOR = "preprocessor_config.json"
RESAMPLES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers of the filters
STEPS = ("do_resize", "do_rescale", "do_normalize")  # that heedful takes with every picture
NOTE = f"no {PREPROCESSOR} says how pictures are read: they are read as Hugging Face does with a ViT if nothing is said"


def picture_settings(folder: Path, size: tuple[int, int]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read how pictures are brought to the size of a model, as keys of [image], and notes for the user.

    Args:
        folder: The model folder; without the file of these settings, those of `ViTImageProcessor` are taken.
        size: Height and width of the model's pictures, in pixels.

    Raises:
        InputError: The file is damaged, or pictures are read in a way that heedful does not know.
    """
    there = (folder / PREPROCESSOR).is_file()
    found = read_config(folder, PREPROCESSOR) if there else {}
    crop = bool(found.get("do_center_crop", False))
    given = _sides(found.get("crop_size" if crop else "size", {"height": size[0], "width": size[1]}))
    problems = [f"{step} is false, and heedful takes this step always" for step in STEPS if not found.get(step, True)]
    if given != size:
        problems.append(f"pictures are brought to {given[0]} x {given[1]} pixels, and the model reads {size}")
    if abs(255 * found.get("rescale_factor", 1 / 255) - 1) > 1e-3:
        problems.append(f"rescale_factor is {found['rescale_factor']}, and heedful's pixels go from 0 to 1")
    if found.get("resample", 2) not in RESAMPLES:
        problems.append(f"resample is {found['resample']}, and heedful has {', '.join(RESAMPLES.values())}")
    if problems:
        raise InputError(f"{folder / PREPROCESSOR}: this model cannot be converted: {'; '.join(problems)}")
    settings = {
        "size": list(size),
        "resize": "crop" if crop else "squash",
        "resample": RESAMPLES[found.get("resample", 2)],
        "mean": _each(found.get("image_mean", 0.5)),
        "std": _each(found.get("image_std", 0.5)),
    }
    return settings, () if there else (NOTE,)


def preprocessor(image: ImageConfig) -> dict[str, Any]:
    """The contents of preprocessor_config.json for pictures that are read as the settings say."""
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
        return {"image_processor_type": "ViTImageProcessor", "size": whole, **shared}
    cut = {"size": {"shortest_edge": image.size[0]}, "do_center_crop": True, "crop_size": whole}
    return {"image_processor_type": "CLIPImageProcessor", **cut, **shared}


def _each(value: Any) -> list[float]:
    """Numbers for all channels, of which there may be one alone."""
    return list(value) if isinstance(value, list) else [value]


def _sides(size: Any) -> tuple[Any, Any]:
    """Height and width of a size, which files write as one number or as a table."""
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        return size.get("height", edge), size.get("width", edge)
    return size, size
