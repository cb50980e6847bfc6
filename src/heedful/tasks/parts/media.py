"""Data of images, audio and videos: how their files are found, prepared, read and augmented.

B batch, N rows of pixels or frames.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.media import check_media, prepare_media, read_files, skips_bad
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.filters import DropReport
from heedful.data.readers.media_files import MediaFile, media_files
from heedful.data.stores import MediaStore
from heedful.machine.process import map_on_cores
from heedful.media.modality import modality_of, padded
from heedful.random_numbers import AUGMENTATION, KeyedGenerator
from heedful.tasks.dataset import B, Dataset, Report
from heedful.tasks.parts.batches import BatchesByLength
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import one_tokenizer

CPU = torch.device("cpu")


class MediaFiles(BatchesByLength, Dataset[B]):
    """Base class of data of images, audio or videos; a subclass defines targets of files, and makes batches."""

    reads_files = True

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(recipe, examples.tokenizers, examples.digest)
        self.medium = modality_of(recipe)
        self.plan_batches(examples, recipe)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_media(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        return read_files(corpus, recipe, DropReport(), skip=skips_bad(recipe, training=corpus in recipe.data.train))

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        resolved = cls.resolve(recipe)

        examples = prepare_media(
            resolved,
            folder,
            lambda file, corpus, tokenizers: cls.target(file, corpus, resolved, tokenizers),
            lambda: cls.new_tokenizers(resolved, report),
            cls.load_tokenizers,
            report,
            tokenizers,
        )
        return cls(resolved, examples)

    @staticmethod
    @abstractmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair, /) -> list[int]:
        """Return the targets of a file: the number of its class, or the tokens of its text."""

    @staticmethod
    def new_tokenizers(_recipe: Recipe, _report: Callable[[str], None], /) -> TokenizerPair:
        """Load or train the tokenizers: none, or `tokenizer_of_texts` where texts belong to the files."""
        return NoTokenizers()

    @staticmethod
    def load_tokenizers(_folder: Path, /) -> TokenizerPair:
        """Load the tokenizers from their folder: none, or `TokenizerPair.load` where texts belong to the files."""
        return NoTokenizers()

    @abstractmethod
    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> B:
        """Read the examples of a batch by their numbers, which count through all stores.

        The epoch is a key of what is random in training; None in validation: nothing is random.
        """

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        return self.read(self.examples.train, ids, epoch, device)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> B:
        return self.read([self.valid], ids, None, device)

    @property
    def valid(self) -> MediaStore:
        return self.examples.stores[-1]

    def inputs(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None
    ) -> tuple[Float32[Tensor, "B N ..."], Bool[Tensor, "B N"]]:
        """Read the inputs of a batch, with their padding mask; epoch None: without augmentation."""
        return padded(list(map_on_cores(lambda number: self.features(stores, number, epoch), ids.tolist(), CPU)))

    @staticmethod
    def positions(stores: Sequence[MediaStore], ids: np.ndarray) -> int:
        """Number of positions in the stack of the inputs of a batch, as long as they are without augmentation."""
        return sum(int(store.lengths[index, 0]) for store, index in places(stores, ids))

    def features(self, stores: Sequence[MediaStore], number: int, epoch: int | None) -> Float32[Tensor, "N ..."]:
        """Read one input, augmented at random by a key of seed, epoch and its number."""
        store, index = place_of(stores, number)
        decoded = self.medium.read(store.content(index))
        if epoch is None:
            return self.medium.features(decoded)
        return self.medium.augmented(decoded, KeyedGenerator(self.recipe.train.seed, AUGMENTATION, epoch, number))


def tokenizer_of_texts(recipe: Recipe, report: Callable[[str], None], /) -> TokenizerPair:
    """Load the tokenizer that a recipe names, or train one on the texts of the training files."""
    texts = (file.target for corpus in recipe.data.train for file in media_files(corpus, recipe.data))
    return one_tokenizer(recipe, texts, report)


def places(stores: Sequence[MediaStore], ids: np.ndarray) -> list[tuple[MediaStore, int]]:
    """Find the examples of a batch, numbered through several stores: the store of each, and its number there."""
    return [place_of(stores, number) for number in ids.tolist()]


def place_of(stores: Sequence[MediaStore], number: int) -> tuple[MediaStore, int]:
    """Find an example, numbered through several stores: its store, and its number there."""
    ends = list(accumulate(map(len, stores)))
    index = int(np.searchsorted(ends, number, side="right"))
    return stores[index], number - ([0, *ends])[index]
