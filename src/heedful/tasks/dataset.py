"""Data of a task: how its examples are found, prepared, planned into batches and read."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, FilterConfig, Recipe
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair

Report = Callable[[str], None]  # is called with sentences that say what is done

# Filter settings that leave out no example of a test set.
EVERYTHING = FilterConfig(max_characters=sys.maxsize, max_tokens=sys.maxsize, max_ratio=None, duplicates=True)


@runtime_checkable
class Batch(Protocol):
    """Interface of a batch: examples that go through the model together."""

    @property
    def tokens(self) -> int:
        """Number of real tokens that the model reads from the batch, for the measurement of speed."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisors of the loss terms: for each term, the number of target tokens or of examples in the batch."""
        ...


B = TypeVar("B", bound=Batch)


class Dataset(ABC, Generic[B]):
    """Base class of the data of a task; an instance has training and validation data open, or a test set.

    Attributes:
        reads_files: True if a batch takes long to read, as files have to be decoded for it.
        recipe: The recipe with what the data decides filled in, such as the classes.
        tokenizers: The tokenizers of source and target; for data with one kind of text both are the same.
        digest: SHA-256 of all that the prepared data depends on.
    """

    reads_files: ClassVar[bool] = False

    def __init__(self, recipe: Recipe, tokenizers: TokenizerPair, digest: str) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.digest = digest

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in settings that the training data decides, such as the classes, unless the recipe has them."""
        return recipe

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        """Check that a recipe has what `prepare` needs, such as a tokenizer; no data is read."""

    @classmethod
    def peek(cls, _corpus: CorpusConfig, _recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the raw examples of a corpus, before they are encoded, to find errors in its files early."""
        return iter(())

    @classmethod
    @abstractmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        """Read the data of a recipe, from `folder` if prepared there before, else from its files.

        Args:
            recipe: The recipe.
            folder: Where the data is prepared.
            report: Called with sentences that say what is done.
            tokenizers: Those of a model that is tested: then `data.valid` is the test set, there is no training data,
                and nothing that a training decides is measured. None: they are loaded or trained.
        """

    @classmethod
    def open_test(cls, recipe: Recipe, tokenizers: TokenizerPair, folder: Path, report: Report) -> Any:
        """Open the test set that a recipe names, `data.test`, for a model with these tokenizers."""
        if recipe.data.test is None:
            raise InputError("there is nothing to test a model on; set data.test")
        data = replace(recipe.data, train=(), valid=recipe.data.test, filters=EVERYTHING)
        return cls.prepare(replace(recipe, data=data), folder, report, tokenizers)

    @abstractmethod
    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """List the batches of an epoch in order, each as ids of examples: a pure function of recipe and number."""

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch, padding included, in any unit: here the number of its examples."""
        return len(ids)

    @abstractmethod
    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        """Read the examples of one batch: a pure function of its arguments, even where the batch is drawn at random."""

    @abstractmethod
    def valid_plan(self) -> Sequence[np.ndarray] | None:
        """List the batches of the validation or test set in a fixed order, as ids of examples; None without one."""

    @abstractmethod
    def valid_batch(self, ids: np.ndarray, device: torch.device) -> B:
        """Read the examples of one batch of the validation or test set; nothing in it is random."""

    @property
    def valid_corpus(self) -> CorpusConfig:
        """The files of the validation or test set; without one an InputError."""
        if self.recipe.data.valid is None:
            raise InputError("the recipe names no validation data; set data.valid")
        return self.recipe.data.valid

    def remarks(self) -> list[str]:
        """List what a user should know about the prepared data before training, such as that one class dominates."""
        return []

    def check_unchanged(self) -> None:
        """Raise a RunError if a file of the prepared data has changed since it was opened."""
