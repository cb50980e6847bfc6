"""Predictor of masked patches: masks some patches of each image, and fills them in with the model's predictions.

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
from heedful.architectures.transformer.masked_models import denormalise_patches
from heedful.config.schema import Recipe
from heedful.media.image_augmentation import masked_patches
from heedful.media.images import Pixels
from heedful.media.modality import Images
from heedful.nn.patches import patchify, unpatchify
from heedful.predictors.media_reader import Input, MediaReader
from heedful.predictors.predictor import Predictor

GREY, WHITE, GAP = 128, 255, 2  # colour of masked patches; colour between images, and the width of the gap in pixels


@dataclass(frozen=True)
class FilledImage:
    """An image before and after masked patches were filled in.

    Attributes:
        original: The image at the recipe's size.
        hidden: True for the masked patches.
        filled: The image with the predicted patches in place of the masked ones.
    """

    original: Pixels
    hidden: Bool[np.ndarray, "R Q"]
    filled: Pixels

    @property
    def seen(self) -> Pixels:
        """The visible part of the image, with masked patches in grey."""
        side = len(self.original) // len(self.hidden)
        covered = np.kron(self.hidden, np.ones((side, side), bool))[:, :, None]
        return np.where(covered, np.uint8(GREY), self.original)

    def side_by_side(self) -> Pixels:
        """Return one image with the original, the model's input and the filled image side by side."""
        height, _, channels = self.original.shape
        gap = np.full((height, GAP, channels), WHITE, np.uint8)
        return np.concatenate([self.original, gap, self.seen, gap, self.filled], axis=1)


class PatchFiller(Predictor[MaskedPatchModel, FilledImage]):
    """Filler of masked patches: a model trained on the task `masked_patches`.

    The model predicts patches with mean 0 and variance 1 (He et al. 2022, section 3). It predicts structure, not
    brightness, so each patch is displayed with the mean and variance of the original.
    """

    reads_files = True

    def __init__(self, model: MaskedPatchModel, recipe: Recipe) -> None:
        super().__init__(model)
        self.reader = MediaReader(model, recipe)
        self.images = Images(recipe.image)
        self.rate = recipe.masking.rate

    @overload
    def predict(self, files: Input) -> FilledImage: ...
    @overload
    def predict(self, files: Iterable[Input]) -> list[FilledImage]: ...
    def predict(self, files: object) -> FilledImage | list[FilledImage]:
        """Mask patches of an image, or of several, and fill them in; see `reconstruct`."""
        return self.reader.inputs.one_or_all(self.answers, files)

    __call__ = predict

    def reconstruct(self, files: Iterable[Input], seed: int = 1) -> Iterator[FilledImage]:
        """Mask patches of any number of images, and fill them in, in order and in bounded memory.

        Args:
            files: File names, bytes, or arrays of pixels (H W C, 8 bits).
            seed: Selects the masked patches, which are the same in every image.
        """
        return self.answers(self.reader.inputs.each(files), seed)

    def answers(self, decoded: Iterable[np.ndarray], seed: int = 1) -> Iterator[FilledImage]:
        """Mask patches of decoded images and fill them in."""
        patch = self.images.config.patch
        hidden = masked_patches(self.images.config.grid, self.rate, seed, 0, 0)

        def fill(inputs: Tensor, padding_mask: Tensor) -> list[FilledImage]:
            mask = torch.from_numpy(hidden).to(inputs.device).expand(len(inputs), -1, -1)
            predicted = denormalise_patches(self.model(inputs, padding_mask, mask).float(), inputs, patch)
            # Visible patches come from the image: the loss covers only masked patches (He et al. 2022, section 3).
            filled = unpatchify(torch.where(mask[..., None], predicted, patchify(inputs, patch)), patch)
            pairs = zip(self.images.pixels(inputs), self.images.pixels(filled), strict=True)
            return [FilledImage(original, hidden, new) for original, new in pairs]

        return self.reader.run(decoded, fill)
