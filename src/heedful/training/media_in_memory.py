"""Pictures, sounds and videos that a program holds, as files from which a run reads them: no bit of them is changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.media.audio import MAX_RATE, as_samples, au
from heedful.media.images import pixels_of, png
from heedful.media.videos import animated_png
from heedful.predictors.media_reader import GIVE, SINGLE, PillowImage
from heedful.predictors.predictor import described
from heedful.storage.atomic import named_write_errors

RATES = "sampling_rate", "rate"  # keys of the samples a second, in the dictionary of a sound
ENCODERS: dict[str, tuple[Callable[[np.ndarray], bytes], str]] = {  # of arrays, by `data.modality`
    "image": (png, ".png"),
    "video": (animated_png, ".png"),
}


@dataclass(frozen=True)
class MediaWriter:
    """Writer of the pictures, sounds or videos of one part of the data."""

    recipe: Recipe
    folder: Path

    def name(self, given: object, number: int, place: str) -> str:
        """Return the name of the file of an example: as given, or of the one that is written, relative to the table."""
        value = from_mapping(given) if isinstance(given, Mapping) else given
        if isinstance(value, str | PathLike):
            return str(Path(value).absolute())
        try:
            content, ending = self.encoded(value)
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
        file = self.folder / f"{number}{ending}"
        with named_write_errors(file):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not file.is_file() or file.read_bytes() != content:
                file.write_bytes(content)
        return f"{self.folder.name}/{file.name}"

    def encoded(self, value: Any) -> tuple[bytes, str]:
        """Return the bytes and the ending of a file that holds a value."""
        is_sound = self.recipe.data.modality == "audio"
        rate = self.recipe.audio.rate
        if is_sound and isinstance(value, tuple | list) and len(value) == 2:
            value, rate = value
        if isinstance(value, bytes | BufferedIOBase):
            return (value if isinstance(value, bytes) else value.read()), ""
        if isinstance(value, PillowImage) and not is_sound:
            value = pixels_of(value)
            value = value[None] if self.recipe.data.modality == "video" else value
        elif isinstance(value, Tensor):
            value = value.detach().cpu().numpy()
        if not isinstance(value, np.ndarray):
            forms = " or (samples, samples a second)" if is_sound else ""
            raise InputError(f"{described(value)} is not one of the files to learn from; give {GIVE}{forms}")
        if not is_sound:
            encode, ending = ENCODERS[self.recipe.data.modality]
            return encode(value), ending
        if not isinstance(rate, int | np.integer) or not 0 < rate <= MAX_RATE:
            raise InputError(f"{described(rate)} is not a number of samples a second; give a sound as (samples, rate)")
        return au(as_samples(value, int(rate)), int(rate)), ".au"


def from_mapping(given: Mapping[Any, Any]) -> object:
    """Return what a dictionary of a data set holds: an array with its rate, the bytes of a file, or its name.

    A dictionary with other keys is returned as it is.
    """
    if given.get("array") is not None:
        rates = [given[key] for key in RATES if key in given]
        return (np.asarray(given["array"]), *rates) if rates else np.asarray(given["array"])
    return next((given[key] for key in ("bytes", "path") if given.get(key) is not None), given)


def is_one(row: object) -> bool:
    """True if a row is one picture, sound or video by itself, not a tuple or a dictionary with more."""
    return isinstance(row, SINGLE) or (isinstance(row, Mapping) and not row.keys().isdisjoint(("array", "bytes")))
