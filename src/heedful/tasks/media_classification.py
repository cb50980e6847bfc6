"""Classification of images, of audio and of videos: one of several classes for each file.

B batch, N rows of pixels or frames, F features of a row, C classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.architectures import SequenceClassifier
from heedful.architectures.input_layers import media_classifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.media_files import MediaFile, media_files, media_labels
from heedful.data.stores import MediaStore
from heedful.errors import InputError
from heedful.losses import Loss, share_cross_entropy
from heedful.metrics.classes import Classes
from heedful.predictors.media_classifier import MediaClassifier
from heedful.random_numbers import MIXUP, KeyedGenerator
from heedful.tasks.parts.classes import class_weights, remarks_on_classes, with_class_weights
from heedful.tasks.parts.media import MediaFiles, places
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair


@dataclass(frozen=True)
class MediaBatch:
    """Batch of images, audio or videos with the share of each class: 0 or 1 unless examples were mixed."""

    inputs: Float32[Tensor, "B N *F"]
    padding_mask: Bool[Tensor, "B N"]
    shares: Float32[Tensor, "B C"]
    tokens: int  # positions of the inputs in the stack

    @property
    def counts(self) -> tuple[int, ...]:
        return (len(self.inputs),)


class LabelledFiles(MediaFiles[MediaBatch]):
    """Images, audio or videos, each with one of the classes in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the classes of the training data in a recipe, unless the recipe names them, and their weights."""
        recipe = replace(recipe, data=replace(recipe.data, labels=media_labels(recipe.data)))
        return with_class_weights(recipe, lambda corpus: (file.target for file in media_files(corpus, recipe.data)))

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Check the classes of all files as soon as they are known, and iterate over the files."""
        for file in media_files(corpus, recipe.data) if recipe.data.labels else ():
            cls.target(file, corpus, recipe, NoTokenizers())
        return super().peek(corpus, recipe)

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Return the number of the class of a file."""
        if file.target not in recipe.data.labels:
            is_piece = file.line is not None and corpus.part != WHOLE
            sorted_rows = "; where rows are sorted by class, shuffle them, as part takes a piece of them"
            raise InputError(
                f"{file.place(corpus)}: {file.target!r} is none of the classes {', '.join(recipe.data.labels)}; mend "
                f"it, or name all of them in data.labels{sorted_rows * is_piece}"
            )
        return [recipe.data.labels.index(file.target)]

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> MediaBatch:
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        shares = self.shares(stores, ids)
        if epoch is not None and self.medium.mixup:
            others, weights = self.partners(ids, epoch)
            mixed, _ = self.inputs(stores, others, epoch)
            # The others are cut at their end, or padded with zeros, to the length of the batch.
            mixed = F.pad(mixed, (*[0] * (2 * mixed.dim() - 3), inputs.size(1) - mixed.size(1)))
            inputs = torch.lerp(mixed, inputs, weights.view(-1, *[1] * (inputs.dim() - 1)))
            shares = torch.lerp(self.shares(stores, others), shares, weights[:, None])
        return MediaBatch(inputs.to(device), padding_mask.to(device), shares.to(device), self.positions(stores, ids))

    def shares(self, stores: Sequence[MediaStore], ids: np.ndarray) -> Float32[Tensor, "B C"]:
        """Read the classes of examples: 1 for the class of each."""
        classes = torch.tensor([int(store.target(index)[0]) for store, index in places(stores, ids)])
        return F.one_hot(classes, len(self.recipe.data.labels)).float()

    def partners(self, ids: np.ndarray, epoch: int) -> tuple[np.ndarray, Float32[Tensor, " B"]]:
        """Draw for each example another one to mix it with, from all, and its own share (Zhang et al. 2018)."""
        chances = [KeyedGenerator(self.recipe.train.seed, MIXUP, epoch, number) for number in ids.tolist()]
        total = sum(map(len, self.examples.train))
        others = np.array([chance.integer(total) for chance in chances])
        return others, torch.tensor([chance.beta(self.medium.mixup) for chance in chances])

    def remarks(self) -> list[str]:
        return remarks_on_classes(self.examples, self.recipe.data)


class MediaClassification(Task[MediaBatch]):
    """Base class of the classification of images, audio and videos: each file has a class of `data.labels`."""

    families = ("encoder", "decoder")
    command = "heedful predict"
    example = "FILE"
    dataset = LabelledFiles
    metrics = ("accuracy", "macro_f1", "f1", "matthews", "loss")
    predicts = Classes

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SequenceClassifier:
        del tokenizers
        if not recipe.data.labels:
            raise InputError('the classes are not known; name them: data.labels = ["...", "..."]')
        return media_classifier(recipe, len(recipe.data.labels))

    @staticmethod
    def use(model: SequenceClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> MediaClassifier:
        del tokenizers
        return MediaClassifier(model, recipe)

    def loss(self, model: SequenceClassifier, batch: MediaBatch) -> tuple[Loss, ...]:
        logits = model(batch.inputs, batch.padding_mask)
        weights = class_weights(self.recipe, logits.device)
        return (share_cross_entropy(logits, batch.shares, self.recipe.train.label_smoothing, weights),)

    def outputs(self, model: SequenceClassifier, run: Evaluation) -> Classes:
        def decide(batch: MediaBatch) -> Tensor:
            return torch.stack([model(batch.inputs, batch.padding_mask).argmax(-1), batch.shares.argmax(-1)], dim=1)

        predicted, expected = run.per_example(self.data, model, decide).T
        return Classes(predicted, expected, self.recipe.data.labels)


class ImageClassification(MediaClassification):
    """Image classification task: an image belongs to one of the classes (Dosovitskiy et al. 2021)."""

    modality = "image"


class AudioClassification(MediaClassification):
    """Audio classification task: an audio clip belongs to one of the classes."""

    modality = "audio"


class VideoClassification(MediaClassification):
    """Video classification task: a video belongs to one of the classes (Arnab et al. 2021)."""

    modality = "video"
