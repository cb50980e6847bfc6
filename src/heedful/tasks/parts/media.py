"""Data of images, audio and videos: how files are found, prepared, read and augmented.

B batch, N rows of pixels or frames.
"""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.media import prepare_media
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.media_files import MediaFile, media_files
from heedful.data.stores import MediaStore
from heedful.machine.process import map_on_cores
from heedful.media.modality import modality_of, padded
from heedful.random_numbers import AUGMENTATION, KeyedGenerator
from heedful.tasks.dataset import B, Dataset, Report
from heedful.tasks.readers.media import MediaReader
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import one_tokenizer

CPU = torch.device("cpu")


class MediaFiles(Dataset[B]):
    """Base class for image, audio or video data; a subclass sets its `reader`, and defines `target` and `read`."""

    reader: ClassVar[type[MediaReader]]
    reads_files = True

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(recipe, examples)
        self.modality = modality_of(recipe)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        resolved = cls.reader.resolve(recipe)

        def new_tokenizers() -> TokenizerPair:
            if not cls.reader.has_texts:
                return NoTokenizers()
            texts = (file.target for corpus in resolved.data.train for file in media_files(corpus, resolved.data))
            return one_tokenizer(resolved, texts, report)

        examples = prepare_media(
            resolved,
            folder,
            lambda file, corpus, tokenizers: cls.target(file, corpus, resolved, tokenizers),
            new_tokenizers,
            TokenizerPair.load if cls.reader.has_texts else lambda _folder: NoTokenizers(),
            report,
            tokenizers,
        )
        return cls(resolved, examples)

    @staticmethod
    @abstractmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair, /) -> list[int]:
        """Return the targets of a file: the number of its class, or the tokens of its text."""

    @property
    def valid(self) -> MediaStore:
        return self.examples.stores[-1]

    def inputs(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None
    ) -> tuple[Float32[Tensor, "B N ..."], Bool[Tensor, "B N"]]:
        """Read the inputs of a batch and their padding mask; inputs are augmented at random unless `epoch` is None."""

        def features(number: int) -> Float32[Tensor, "N ..."]:
            store, index = place_of(stores, number)
            decoded = self.modality.read(store.content(index))
            if epoch is None:
                return self.modality.features(decoded)
            # Keyed by epoch and example, so that the result depends neither on the batch nor on the worker.
            return self.modality.augmented(decoded, KeyedGenerator(self.recipe.train.seed, AUGMENTATION, epoch, number))

        return padded(list(map_on_cores(features, ids.tolist(), CPU)))

    @staticmethod
    def positions(stores: Sequence[MediaStore], ids: np.ndarray) -> int:
        """Count the positions of a batch in the model's layers; augmentation does not change the number."""
        return sum(int(store.lengths[index, 0]) for store, index in places(stores, ids))


def places(stores: Sequence[MediaStore], ids: np.ndarray) -> list[tuple[MediaStore, int]]:
    """Find the store of each example in a batch, and its index in that store; `ids` are numbered across all stores."""
    return [place_of(stores, number) for number in ids.tolist()]


def place_of(stores: Sequence[MediaStore], number: int) -> tuple[MediaStore, int]:
    """Find the store of an example, and its index in that store; examples are numbered across all stores."""
    index = number
    for store in stores:
        if index < len(store):
            return store, index
        index -= len(store)
    raise IndexError(number)
