"""Masked patches task: images of which patches are hidden, whose pixels are predicted; no labels are needed.

The masked autoencoder (MAE, He et al. 2022) encodes the visible patches only and has a second Transformer that predicts
the hidden ones; SimMIM (Xie et al. 2022) puts one trained vector in the place of each hidden patch and predicts by a
linear layer. The model here is that of SimMIM: its encoder has all places of an image, so it works with every position
scheme and stem, nothing has to be thrown away after the training, and what is read afterwards has the same length. MAE
saves three quarters of the encoder's work, which matters for large models most. Target, loss and share of hidden
patches are those of MAE: pixels normalised patch by patch, the squared error of the hidden patches, and 75 %, as
patches are hidden one by one as there (SimMIM hides blocks of them).

B batch, H height, W width, C channels, R rows and Q columns of patches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.architectures import MaskedPatchModel
from heedful.architectures.transformer.masked_models import normalised
from heedful.config.schema import CorpusConfig, MaskingConfig, Recipe
from heedful.data.readers.media_files import MediaFile
from heedful.data.stores import MediaStore
from heedful.errors import InputError
from heedful.losses import Loss, squared_error
from heedful.media.image_augmentation import masked_patches
from heedful.predictors.patch_filler import PatchFiller
from heedful.tasks.parts.media import MediaFiles
from heedful.tasks.task import Task
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MaskedPatchBatch:
    """Batch of images, and which of their patches are hidden."""

    inputs: Float32[Tensor, "B H W C"]
    padding_mask: Bool[Tensor, "B H"]
    hidden: Bool[Tensor, "B R Q"]
    tokens: int  # positions of the inputs in the stack

    @property
    def counts(self) -> tuple[int, ...]:
        return (int(self.hidden.sum()),)


class HiddenPatches(MediaFiles[MaskedPatchBatch]):
    """Images of which some patches are hidden; which ones is drawn anew in each epoch."""

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        super().check(recipe)
        if replace(recipe.masking, rate=MaskingConfig.rate) != MaskingConfig():
            raise InputError('task = "masked_patches" has masking.rate only; leave the other keys of [masking] out')
        if recipe.image.mixup:
            raise InputError('task = "masked_patches" has no classes to mix; leave image.mixup out')

    @staticmethod
    def target(_file: MediaFile, _corpus: CorpusConfig, _recipe: Recipe, _tokenizers: TokenizerPair, /) -> list[int]:
        return [0]

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> MaskedPatchBatch:
        """Read the images of a batch and hide some patches; in validation the same of an image every time."""
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        key = (0, 0) if epoch is None else (self.recipe.train.seed, epoch)
        image, rate = self.recipe.image, self.recipe.masking.rate
        hidden = np.stack([masked_patches(image.grid, rate, *key, number) for number in ids.tolist()])
        return MaskedPatchBatch(
            inputs.to(device),
            padding_mask.to(device),
            torch.from_numpy(hidden).to(device),
            self.positions(stores, ids),
        )


class MaskedPatches(Task[MaskedPatchBatch]):
    """Masked patches task: predicts the pixels of hidden patches; which are hidden is drawn anew in each epoch."""

    modality = "image"
    families = ("encoder",)
    command = "heedful fill"
    example = "FILE --output FILE.png"
    dataset = HiddenPatches
    metrics = ("loss",)

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> MaskedPatchModel:
        del tokenizers
        return MaskedPatchModel(recipe.model, recipe.image)

    @staticmethod
    def use(model: MaskedPatchModel, recipe: Recipe, tokenizers: TokenizerPair) -> PatchFiller:
        del tokenizers
        return PatchFiller(model, recipe)

    def loss(self, model: MaskedPatchModel, batch: MaskedPatchBatch) -> tuple[Loss, ...]:
        states = model.states(batch.inputs, batch.padding_mask, batch.hidden)
        targets = normalised(batch.inputs, self.recipe.image.patch)
        return (squared_error(model.output(states[batch.hidden]), targets[batch.hidden]),)
