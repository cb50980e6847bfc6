"""Masked patches task: predicts the pixels of masked image patches; no labels are needed.

The masked autoencoder (MAE, He et al. 2022) encodes only the visible patches and has a second Transformer that predicts
the masked ones; SimMIM (Xie et al. 2022) replaces each masked patch with a trained vector and predicts with a linear
layer. The model here is SimMIM's. Its encoder reads all positions of an image: it works with every position scheme and
stem, and its inputs always have the same length. All of it is used after training. MAE saves three quarters of the
encoder's work, which matters most for large models. Target, loss and masking ratio are MAE's: pixels normalised patch
by patch, the squared error of the masked patches, and 75%. This ratio fits patches that are masked one by one; SimMIM
masks blocks of them.

B batch, H height, W width, C channels, R rows and Q columns of patches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.architectures import MaskedPatchModel
from heedful.architectures.transformer.masked_models import normalise_patches
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.media_files import MediaFile
from heedful.data.stores import MediaStore
from heedful.losses import Loss, squared_error
from heedful.media.image_augmentation import masked_patches
from heedful.predictors.patch_filler import PatchFiller
from heedful.tasks.parts.media import MediaFiles
from heedful.tasks.readers.media import MaskedImageReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Task
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MaskedPatchBatch:
    """Batch of images, with a mask of their patches."""

    inputs: Float32[Tensor, "B H W C"]
    padding_mask: Bool[Tensor, "B H"]
    masked: Bool[Tensor, "B R Q"]
    tokens: int  # number of positions in the model's layers, summed over the inputs
    counts: tuple[int, ...]  # the number of masked patches


class MaskedImages(MediaFiles[MaskedPatchBatch]):
    """Images with masked patches, which are sampled anew in each epoch."""

    reader = MaskedImageReader

    @staticmethod
    def target(_file: MediaFile, _corpus: CorpusConfig, _recipe: Recipe, _tokenizers: TokenizerPair, /) -> list[int]:
        # A store needs a target for every file. This one is not used, because the true targets are pixels.
        return [0]

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> MaskedPatchBatch:
        """Read the images of a batch, and mask some patches of each; in validation, always the same patches."""
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        grid, rate, key = self.recipe.image.grid, self.recipe.masking.rate, self.key(epoch)
        masked = np.stack([masked_patches(grid, rate, *key, number) for number in ids.tolist()])
        return MaskedPatchBatch(
            inputs=inputs.to(device),
            padding_mask=padding_mask.to(device),
            masked=torch.from_numpy(masked).to(device),
            tokens=self.positions(stores, ids),
            counts=(int(masked.sum()),),
        )


class MaskedPatches(Task[MaskedPatchBatch]):
    """Masked patches task: predicts the pixels of the masked patches of images."""

    spec = SPECS["masked_patches"]
    dataset = MaskedImages

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> MaskedPatchModel:
        return MaskedPatchModel(recipe.model, recipe.image)

    @staticmethod
    def use(model: MaskedPatchModel, recipe: Recipe, tokenizers: TokenizerPair) -> PatchFiller:
        return PatchFiller(model, recipe)

    def loss(self, model: MaskedPatchModel, batch: MaskedPatchBatch) -> tuple[Loss, ...]:
        states = model.states(batch.inputs, batch.padding_mask, batch.masked)
        targets = normalise_patches(batch.inputs, self.recipe.image.patch)
        # Only masked patches count: (B, R, Q, D) -> (N, D).
        return (squared_error(model.output(states[batch.masked]), targets[batch.masked]),)
