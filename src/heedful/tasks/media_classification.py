"""Classification of images, audio and videos: each file belongs to one of several classes.

B batch, N rows of pixels or frames, F features of a row, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.architectures import SequenceClassifier
from heedful.architectures.input_layers import media_classifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.media_files import MediaFile
from heedful.data.stores import MediaStore
from heedful.errors import InputError
from heedful.losses import Loss, soft_label_cross_entropy
from heedful.metrics.classes import Classes
from heedful.predictors.media_classifier import MediaClassifier
from heedful.random_numbers import MIXUP, KeyedGenerator
from heedful.tasks.parts.classes import class_remarks, class_weights
from heedful.tasks.parts.media import MediaFiles, places
from heedful.tasks.readers.media import LabelledFileReader, class_number
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MediaBatch:
    """Batch of images, audio or videos with the share of each class: 0 or 1 unless examples are mixed."""

    inputs: Float32[Tensor, "B N *F"]
    padding_mask: Bool[Tensor, "B N"]
    shares: Float32[Tensor, "B C"]
    tokens: int  # number of positions in the model's layers, summed over the inputs
    counts: tuple[int, ...]  # the number of examples


class LabelledFiles(MediaFiles[MediaBatch]):
    """Images, audio or videos, each with one of the classes in `data.labels`."""

    reader = LabelledFileReader

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        return [class_number(file, corpus, recipe)]

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> MediaBatch:
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        shares = self.shares(stores, ids)
        if epoch is not None and self.modality.mixup:
            # Mixup: inputs, (B, N, F), and classes are weighted means of an example and its partner, which is cut or
            # padded to the length of the example.
            others, weights = self.partners(ids, epoch)
            partners, _ = self.inputs(stores, others, epoch)
            # F.pad counts from the last dimension: only dimension 1 changes, and a negative number cuts.
            partners = F.pad(partners, (*[0] * (2 * partners.dim() - 3), inputs.size(1) - partners.size(1)))
            inputs = torch.lerp(partners, inputs, weights.view(-1, *[1] * (inputs.dim() - 1)))
            shares = torch.lerp(self.shares(stores, others), shares, weights[:, None])
        tokens = self.positions(stores, ids)
        return MediaBatch(inputs.to(device), padding_mask.to(device), shares.to(device), tokens, (len(ids),))

    def shares(self, stores: Sequence[MediaStore], ids: np.ndarray) -> Float32[Tensor, "B C"]:
        """Read the class of each example, as one-hot rows."""
        classes = torch.tensor([int(store.target(index)[0]) for store, index in places(stores, ids)])
        return F.one_hot(classes, len(self.recipe.data.labels)).float()

    def partners(self, ids: np.ndarray, epoch: int) -> tuple[np.ndarray, Float32[Tensor, " B"]]:
        """Sample for mixup (Zhang et al. 2018) the id of a partner of each example, (B,), and the example's share."""
        chances = [KeyedGenerator(self.recipe.train.seed, MIXUP, epoch, number) for number in ids.tolist()]
        total = sum(map(len, self.examples.train))
        others = np.array([chance.integer(total) for chance in chances])
        return others, torch.tensor([chance.beta(self.modality.mixup) for chance in chances])

    def remarks(self) -> list[str]:
        return class_remarks(self.examples, self.recipe.data)


class MediaClassification(Task[MediaBatch]):
    """Base class of tasks that classify images, audio or videos: a file has one of the classes in `data.labels`."""

    dataset = LabelledFiles

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SequenceClassifier:
        if not recipe.data.labels:
            raise InputError('the classes are unknown; list them: data.labels = ["...", "..."]')
        return media_classifier(recipe, len(recipe.data.labels))

    @staticmethod
    def use(model: SequenceClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> MediaClassifier:
        return MediaClassifier(model, recipe)

    def loss(self, model: SequenceClassifier, batch: MediaBatch) -> tuple[Loss, ...]:
        logits = model(batch.inputs, batch.padding_mask)
        weights = class_weights(self.recipe, logits.device)
        return (soft_label_cross_entropy(logits, batch.shares, self.recipe.train.label_smoothing, weights),)

    def outputs(self, model: SequenceClassifier, run: Evaluation) -> Classes:
        def decide(batch: MediaBatch) -> Tensor:
            return torch.stack([model(batch.inputs, batch.padding_mask).argmax(-1), batch.shares.argmax(-1)], dim=1)

        predicted, expected = run.per_example(self.data, model, decide).T
        return Classes(predicted, expected, self.recipe.data.labels)


class ImageClassification(MediaClassification):
    """Image classification task: an image belongs to one of the classes (Dosovitskiy et al. 2021)."""

    spec = SPECS["image_classification"]


class AudioClassification(MediaClassification):
    """Audio classification task: an audio clip belongs to one of the classes."""

    spec = SPECS["audio_classification"]


class VideoClassification(MediaClassification):
    """Video classification task: a video belongs to one of the classes (Arnab et al. 2021)."""

    spec = SPECS["video_classification"]
