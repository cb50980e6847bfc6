"""Base class of tasks on pictures, sounds or videos: how their files are found, prepared, read and augmented.

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
from heedful.data.media.media_files import MediaFile, media_files
from heedful.data.media.medium import medium_of, padded
from heedful.data.preparation.media import check_media, prepare_media, read_files, skips_bad
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.random_numbers import AUGMENTATION, Chance
from heedful.data.readers.filters import DropReport
from heedful.data.stores.media_store import MediaStore
from heedful.machine.cores import map_on_cores
from heedful.tasks.examples import ExampleTask
from heedful.tasks.task import B
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import given_tokenizer, one_tokenizer

CPU = torch.device("cpu")


class MediaTask(ExampleTask[B, MediaStore]):
    """Base class of tasks on pictures, sounds or videos; a subclass defines targets of files, and makes batches."""

    reads_files = True

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(recipe, examples)
        self.medium = medium_of(recipe)

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe names training data."""
        check_media(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the files of a corpus, read as in training, to find errors early."""
        return read_files(corpus, recipe, DropReport(), skip=skips_bad(recipe, training=corpus in recipe.data.train))

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """Prepare the files of a recipe, or read prepared ones, and create the task."""
        resolved = cls.resolve(recipe)

        def target(file: MediaFile, corpus: CorpusConfig, tokenizers: TokenizerPair) -> list[int]:
            return cls.target(file, corpus, resolved, tokenizers)

        def tokenizers() -> TokenizerPair:
            return cls.new_tokenizers(resolved, report)

        return cls(resolved, prepare_media(resolved, folder, target, tokenizers, cls.load_tokenizers, report))

    @staticmethod
    @abstractmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair, /) -> list[int]:
        """Return the targets of a file: the number of its class, or the tokens of its text.

        Raises:
            InputError: the target cannot be used.
        """

    @staticmethod
    def new_tokenizers(_recipe: Recipe, _report: Callable[[str], None], /) -> TokenizerPair:
        """Load or train the tokenizers of the task; there are none unless texts belong to the files."""
        return NoTokenizers()

    @staticmethod
    def load_tokenizers(_folder: Path, /) -> TokenizerPair:
        """Load the tokenizers of the task from the folder to which they were saved."""
        return NoTokenizers()

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
        return self.medium.augmented(decoded, Chance(self.recipe.train.seed, AUGMENTATION, epoch, number))


class MediaTextTask(MediaTask[B]):
    """Base class of tasks on pictures or sounds, each with a text; a subclass encodes the text as the target."""

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe names training data, and a tokenizer that can be loaded or trained."""
        super().check_recipe(recipe)
        given_tokenizer(recipe)

    @staticmethod
    def new_tokenizers(recipe: Recipe, report: Callable[[str], None], /) -> TokenizerPair:
        """Load the tokenizer that the recipe names, or train one on the texts of the training files."""
        texts = (file.target for corpus in recipe.data.train for file in media_files(corpus, recipe.data))
        return one_tokenizer(recipe, texts, report)

    @staticmethod
    def load_tokenizers(folder: Path, /) -> TokenizerPair:
        """Load the tokenizer of the texts."""
        return TokenizerPair.load(folder)


def places(stores: Sequence[MediaStore], ids: np.ndarray) -> list[tuple[MediaStore, int]]:
    """Find the examples of a batch, numbered through several stores: the store of each, and its number there."""
    return [place_of(stores, number) for number in ids.tolist()]


def place_of(stores: Sequence[MediaStore], number: int) -> tuple[MediaStore, int]:
    """Find an example, numbered through several stores: its store, and its number there."""
    ends = list(accumulate(map(len, stores)))
    chosen = int(np.searchsorted(ends, number, side="right"))
    return stores[chosen], number - ([0, *ends])[chosen]
