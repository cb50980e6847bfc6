"""Predictor of masked patches: masks some of each image, and fills them in with what the model predicts.

H height, W width, C channels, R rows and Q columns of patches.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.architectures import MaskedPatchModel
from heedful.architectures.transformer.masked_models import restored
from heedful.config.schema import Recipe
from heedful.media.image_augmentation import masked_patches
from heedful.media.images import Pixels
from heedful.media.modality import Images
from heedful.nn.patches import cut, joined
from heedful.predictors.media_reader import Input, MediaReader
from heedful.predictors.predictor import Predictor

GREY, WHITE, GAP = 128, 255, 2  # of masked patches; between images, and its width in pixels


@dataclass(frozen=True)
class FilledPicture:
    """An image before and after masked patches were filled in.

    Attributes:
        original: the image at the size of the recipe.
        hidden: True for the patches that the model did not see.
        filled: the image with what the model predicts in place of these.
    """

    original: Pixels
    hidden: Bool[np.ndarray, "R Q"]
    filled: Pixels

    @property
    def seen(self) -> Pixels:
        """The image as the model saw it: masked patches are grey."""
        side = len(self.original) // len(self.hidden)
        covered = np.kron(self.hidden, np.ones((side, side), bool))[:, :, None]
        return np.where(covered, np.uint8(GREY), self.original)

    def side_by_side(self) -> Pixels:
        """Put the image, what the model saw of it, and the filled image side by side."""
        height, _, channels = self.original.shape
        gap = np.full((height, GAP, channels), WHITE, np.uint8)
        return np.concatenate([self.original, gap, self.seen, gap, self.filled], axis=1)


class PatchFiller(Predictor[MaskedPatchModel, FilledPicture]):
    """Filler of masked patches: a model trained on the task `masked_patches`.

    The model predicts patches of mean 0 and variance 1 (He et al. 2022, section 3). To show them, each gets the mean
    and the variance of the masked patch itself: what is predicted is the form, not the brightness.
    """

    reads_files = True

    def __init__(self, model: MaskedPatchModel, recipe: Recipe) -> None:
        super().__init__(model)
        self.reader = MediaReader(model, recipe)
        self.pictures = Images(recipe.image)
        self.rate = recipe.masking.rate

    @overload
    def predict(self, files: Input) -> FilledPicture: ...
    @overload
    def predict(self, files: Iterable[Input]) -> list[FilledPicture]: ...
    def predict(self, files: object) -> FilledPicture | list[FilledPicture]:
        """Mask patches of an image, or of several, and fill them in; see `reconstruct`."""
        return self.reader.inputs.one_or_all(self.answers, files)

    __call__ = predict

    def reconstruct(self, files: Iterable[Input], seed: int = 1) -> Iterator[FilledPicture]:
        """Mask patches of any number of images, and fill them in, in order and in bounded memory.

        Args:
            files: names of files, their bytes, or arrays of pixels (H W C, 8 bits).
            seed: decides which patches are hidden: the same places in every image.
        """
        return self.answers(self.reader.inputs.each(files), seed)

    def answers(self, decoded: Iterable[np.ndarray], seed: int = 1) -> Iterator[FilledPicture]:
        """Mask patches of decoded images and fill them in."""
        patch = self.pictures.config.patch
        hidden = masked_patches(self.pictures.config.grid, self.rate, seed, 0, 0)

        def fill(inputs: Tensor, padding_mask: Tensor) -> list[FilledPicture]:
            places = torch.from_numpy(hidden).to(inputs.device).expand(len(inputs), -1, -1)
            predicted = restored(self.model(inputs, padding_mask, places).float(), inputs, patch)
            filled = joined(torch.where(places[..., None], predicted, cut(inputs, patch)), patch)
            pairs = zip(self.pictures.pixels(inputs), self.pictures.pixels(filled), strict=True)
            return [FilledPicture(original, hidden, new) for original, new in pairs]

        return self.reader.run(decoded, fill)
