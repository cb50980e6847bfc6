"""Data of a task: how examples are prepared from files, grouped into batches and read."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, FilterConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.errors import InputError
from heedful.tasks.readers import ExampleReader
from heedful.text.tokenizer_pair import TokenizerPair

Report = Callable[[str], None]  # called with progress messages

# Filter settings that keep every example of a test set.
KEEP_ALL = FilterConfig(max_characters=sys.maxsize, max_tokens=sys.maxsize, max_ratio=None, duplicates=True)


@runtime_checkable
class Batch(Protocol):
    """Interface of a batch: examples that go through the model together."""

    @property
    def tokens(self) -> int:
        """Number of real tokens or positions that the model reads, for speed measurements."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisors of the loss: for each of its terms, the number of target tokens or examples in the batch."""
        ...


B = TypeVar("B", bound=Batch)


@runtime_checkable
class Plan(Protocol):
    """Plan of batches, each an array of example ids: a pure function of the data, the recipe and the epoch number."""

    def epoch(self, epoch: int, /) -> list[np.ndarray]:
        """List the batches of an epoch in order."""
        ...

    def cells(self, ids: np.ndarray, /) -> int:
        """Return the size of a batch, padding included."""
        ...


class Dataset(ABC, Generic[B]):
    """Base class of the data of a task; an instance has training and validation data open, or a test set.

    A subclass defines `prepare`, and `read`, which reads the examples of a batch. It also defines `plan`, unless the
    default suits it: batches of examples with similar lengths.

    Attributes:
        reader: Checks recipes, and reads raw examples; it works without torch, so that checks before a run are fast.
        reads_files: True if a batch is read by decoding files, which is slow.
        recipe: The recipe, completed with settings that follow from the data, such as the classes.
        examples: The prepared examples: a store for each training corpus, and one for the validation or test set.
        tokenizers: The source and target tokenizers; for data with one kind of text, both are the same.
        digest: SHA-256 of everything that the prepared data depends on.
    """

    reader: ClassVar[Any] = ExampleReader  # or a subclass of it; subclasses of Dataset declare a narrower type
    reads_files: ClassVar[bool] = False

    def __init__(self, recipe: Recipe, examples: PreparedData[Any]) -> None:
        self.recipe = recipe
        self.examples = examples
        self.tokenizers = examples.tokenizers
        self.digest = examples.digest
        train, valid = examples.train, examples.valid
        self._train_plan = self.plan(train, examples.weights, recipe.train.seed) if train else None
        # The seed is fixed, so that runs with different seeds are validated in the same batches.
        self._valid_plan = None if valid is None else self.plan((valid,), (1.0,), seed=0)

    @classmethod
    @abstractmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        """Read the data of a recipe: from `folder` if it was prepared there before, otherwise from the recipe's files.

        Args:
            recipe: The recipe.
            folder: The folder for the prepared data.
            report: Called with progress messages.
            tokenizers: The tokenizers of a model to be tested; `data.valid` is then the test set, and there is no
                training data to derive settings from. None: the tokenizers are loaded or trained.
        """

    @classmethod
    def open_test(cls, recipe: Recipe, tokenizers: TokenizerPair, folder: Path, report: Report) -> Any:
        """Open a recipe's test set, `data.test`, for a model with these tokenizers."""
        if recipe.data.test is None:
            raise InputError("the recipe has no test data; set data.test")
        data = replace(recipe.data, train=(), valid=recipe.data.test, filters=KEEP_ALL)
        return cls.prepare(replace(recipe, data=data), folder, report, tokenizers)

    def final_tokenizers(self) -> TokenizerPair:
        """Return the tokenizers of the final model, including anything learned from the training set at the end."""
        return self.tokenizers

    def lengths(self, store: Any) -> np.ndarray:
        """Return the lengths of both sides of each example, in positions that the model reads, (n, 2)."""
        return store.lengths

    def plan(self, stores: Sequence[Any], weights: Sequence[float], seed: int) -> Plan:
        """Plan the batches of several stores; their `weights` are how often an epoch contains an example."""
        from heedful.data.batches import BatchPlan

        return BatchPlan([self.lengths(store) for store in stores], weights, self.recipe.train.batch_tokens, seed)

    @abstractmethod
    def read(self, stores: Sequence[Any], ids: np.ndarray, epoch: int | None, device: torch.device, /) -> B:
        """Read the examples of a batch by their ids in the plan, which are numbered across all stores.

        The batch must depend only on the arguments. If it is random, as in masking, its seed is the `key` of the epoch.
        The epoch is None in validation.
        """

    def key(self, epoch: int | None) -> tuple[int, int]:
        """Return the seed of an epoch's random choices, such as masks; in validation, it is always the same."""
        return (0, 0) if epoch is None else (self.recipe.train.seed, epoch)

    def epoch(self, number: int) -> list[np.ndarray]:
        """List the batches of an epoch in order, as example ids, which depend only on data, recipe and epoch."""
        return [] if self._train_plan is None else self._train_plan.epoch(number)

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a training batch, padding included, to find the largest one."""
        return len(ids) if self._train_plan is None else self._train_plan.cells(ids)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        """Read the examples of one training batch."""
        return self.read(self.examples.train, ids, epoch, device)

    def valid_plan(self) -> list[np.ndarray] | None:
        """List the batches of the validation or test set in a fixed order, as example ids; None without one."""
        return None if self._valid_plan is None else self._valid_plan.epoch(0)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> B:
        """Read the examples of one batch of the validation or test set, which is the same each time."""
        # The validation plan numbers only the examples of the last store.
        return self.read(self.examples.stores[-1:], ids, None, device)

    @property
    def valid_corpus(self) -> CorpusConfig:
        """Corpus of the validation or test set; raises an InputError if there is none."""
        if self.recipe.data.valid is None:
            raise InputError("the recipe has no validation data; set data.valid")
        return self.recipe.data.valid

    def remarks(self) -> list[str]:
        """List what a user should know about the prepared data before training, such as that one class dominates."""
        return []

    def check_unchanged(self) -> None:
        """Raise a RunError if a file of the prepared data has changed since it was opened."""
        self.examples.check_unchanged()
