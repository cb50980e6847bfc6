"""Images, audio and videos for predictors: files, their bytes, or arrays, decoded and put into batches.

B batch, N rows of pixels or frames, F features of a row: columns and channels of pixels, or numbers in a frame.
"""

from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from heedful.architectures.model import Model, evaluating
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.media.images import pixels_of
from heedful.media.modality import modality_of, padded
from heedful.predictors.predictor import Done, InputKind, ModelInputs, described, with_article
from heedful.storage.paths import unreadable
from heedful.text.sequences import batches

Input = str | PathLike[str] | bytes | BufferedIOBase | np.ndarray | Tensor  # arrays of pixels, samples or frames
R = TypeVar("R")
D = TypeVar("D")


class _ByName(type):
    """Metaclass of `PillowImage` that compares classes by name, so that Pillow need not be installed."""

    def __instancecheck__(cls, value: object) -> bool:
        return any((kind.__module__, kind.__name__) == ("PIL.Image", "Image") for kind in type(value).__mro__)


class PillowImage(metaclass=_ByName):
    """Stand-in for Pillow's image class in `isinstance` checks."""


SINGLE = (str, PathLike, bytes, np.ndarray, torch.Tensor, BufferedIOBase, PillowImage)
GIVE = "a file name, bytes, an open file, a Pillow image or an array"
BATCH_TOKENS = 8192  # positions in the stack
WINDOW = 16  # batches that are decoded at a time


class MediaReader:
    """Reader that runs a model on images, audio or videos in batches. No result depends on the other inputs."""

    def __init__(self, model: Model, recipe: Recipe) -> None:
        self.model = model
        self.modality = modality_of(recipe)
        self.inputs = InputKind(self.modality.noun, SINGLE, self.decoded, GIVE)

    def decoded(self, value: object) -> np.ndarray:
        """Decode an input: a file name, bytes, an open file, an image, or an array of pixels or samples."""
        return self._decode(value, self.modality.read, self.modality.from_array)

    def decoded_file(self, value: object) -> np.ndarray:
        """Decode an input as `decoded` does, but reject strings, so that a request cannot open files on the server."""
        if isinstance(value, str):
            raise InputError(f"the model reads {self.modality.noun}s, not text; give a file")
        return self.decoded(value)

    def model_inputs(self, value: object) -> ModelInputs:
        decoded = self.decoded_file(value)
        device = next(self.model.parameters()).device
        return ModelInputs([x.to(device) for x in padded([self.modality.features(decoded)])], decoded)

    def parts(self, value: object) -> list[np.ndarray]:
        """Decode an input of any length, split into parts that the model can read; see `Modality.read_parts`."""
        return self._decode(value, self.modality.read_parts, self.modality.parts_of_array)

    def _decode(self, value: object, read: Callable[[bytes], D], of_array: Callable[[np.ndarray], D]) -> D:
        if isinstance(value, torch.Tensor):
            return of_array(value.detach().cpu().numpy())
        if isinstance(value, np.ndarray):
            return of_array(value)
        if isinstance(value, bytes):
            return read(value)
        if isinstance(value, BufferedIOBase):
            return read(value.read())
        if isinstance(value, PillowImage):
            return of_array(pixels_of(value))
        if not isinstance(value, str | PathLike):
            raise InputError(f"{described(value)} is not {with_article(self.modality.noun)}; give {GIVE}")
        try:
            return read(Path(value).read_bytes())
        except OSError as error:
            raise InputError(unreadable(Path(value), error)) from error
        except InputError as error:
            raise InputError(f"{value}: {error}") from error

    def run(
        self,
        decoded: Iterable[np.ndarray],
        apply: Callable[[Tensor, Tensor], Iterable[R]],
        batch_tokens: int = BATCH_TOKENS,
        done: Done = lambda _: None,
    ) -> Iterator[R]:
        """Apply a function to any number of decoded inputs, and yield the result of each, in order.

        Args:
            decoded: The inputs.
            apply: Maps the inputs (B N F) and the padding mask (B N) of a batch to the result of each input.
            batch_tokens: Maximum number of positions in a batch; no result depends on it.
            done: Called with the number of inputs just finished, after each batch.
        """
        device = next(self.model.parameters()).device
        for window in self.windows(decoded, WINDOW * batch_tokens):
            results: dict[int, R] = {}
            with torch.inference_mode(), evaluating(self.model):
                # `batches` only measures rows, so a range takes the place of each input.
                for batch in batches([range(self.modality.tokens(one)) for one in window], batch_tokens):
                    inputs, padding_mask = padded([self.modality.features(window[i]) for i in batch])
                    results |= zip(batch, apply(inputs.to(device), padding_mask.to(device)), strict=True)
                    done(len(batch))
            # Yield after inference mode, which would otherwise be active in the caller while this generator waits.
            yield from (results[index] for index in range(len(window)))

    def windows(self, decoded: Iterable[np.ndarray], tokens: int) -> Iterator[list[np.ndarray]]:
        """Split decoded inputs into lists of at most `modality.window` inputs and about `tokens` positions."""
        window: list[np.ndarray] = []
        size = 0
        for one in decoded:
            window.append(one)
            size += self.modality.tokens(one)
            if len(window) == self.modality.window or size >= tokens:
                yield window
                window, size = [], 0
        if window:
            yield window
