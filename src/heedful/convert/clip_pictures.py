"""Settings of pictures in the files of Hugging Face: size, cut and the mean and deviation of pixels."""

from pathlib import Path
from typing import Any

from heedful.config.modalities import ImageConfig
from heedful.convert.settings import read_config
from heedful.errors import InputError

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of the pixels CLIP has seen
BICUBIC = 3  # Pillow's number of the filter by which heedful, too, resizes
STEPS = ("do_resize", "do_rescale", "do_normalize")  # that heedful takes with every picture


def picture_settings(folder: Path, side: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read how pictures are brought to the size of a model, as keys of [image], and notes for the user.

    Args:
        folder: The model folder; without a file of such settings those of CLIP are taken.
        side: Height and width of the model's pictures, in pixels.

    Raises:
        InputError: A file is damaged, or pictures are read in a way that heedful does not know.
    """
    found = _settings(folder)
    notes = () if found else (f"no {PREPROCESSOR} says how pictures are read: they are read as CLIP's",)
    where = f"{folder}: the settings of pictures"
    crop = bool(found.get("do_center_crop", True))
    size = found.get("crop_size" if crop else "size", side)
    if _sides(size) != (side, side):
        raise InputError(f"{where}: pictures come at the size {size}, and the model reads {side} x {side} pixels")
    if off := [step for step in STEPS if not found.get(step, True)]:
        raise InputError(f"{where}: {' and '.join(off)} is false, and heedful takes these steps always")
    if not abs(found.get("rescale_factor", 1 / 255) * 255 - 1) < 1e-3:
        raise InputError(f"{where}: rescale_factor is {found['rescale_factor']}, and heedful's pixels go from 0 to 1")
    if found.get("resample", BICUBIC) != BICUBIC:
        notes += ("pictures were resized by another filter: heedful's is bicubic, and pixels differ a little",)
    mean, std = found.get("image_mean", MEAN), found.get("image_std", STD)
    resize = "crop" if crop else "squash"
    return {"size": [side, side], "resize": resize, "mean": list(mean), "std": list(std)}, notes


def preprocessor(image: ImageConfig) -> dict[str, Any]:
    """The contents of preprocessor_config.json for pictures that are read as the settings say."""
    whole = {"height": image.size[0], "width": image.size[1]}
    crop = image.resize == "crop"
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": image.size[0]} if crop else whole,
        "do_center_crop": crop,
        "crop_size": whole,
        "resample": BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(image.mean) * (image.channels if len(image.mean) == 1 else 1),
        "image_std": list(image.std) * (image.channels if len(image.std) == 1 else 1),
        "do_convert_rgb": True,
    }


def _settings(folder: Path) -> dict[str, Any]:
    if (folder / PREPROCESSOR).is_file():
        return read_config(folder, PREPROCESSOR)
    found = read_config(folder, PROCESSOR).get("image_processor") if (folder / PROCESSOR).is_file() else None
    return found if isinstance(found, dict) else {}


def _sides(size: Any) -> tuple[Any, Any]:
    """Height and width of a size, which files write in several ways."""
    if isinstance(size, dict):
        edge = size.get("shortest_edge")
        return size.get("height", edge), size.get("width", edge)
    return (size, size) if isinstance(size, int) else tuple(size)
