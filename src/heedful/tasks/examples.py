"""Base classes of tasks whose examples are in stores: planned into batches by their lengths, validated, resampled.

`RowTask` is for examples that are two rows of tokens each: a text and its targets, or two texts.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.batches import BatchPlan, assemble
from heedful.data.preparation.examples import check_examples, prepare_examples
from heedful.data.preparation.prepared_data import PreparedData, at_least_one
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.data.stores.mapped_files import MappedFile
from heedful.data.stores.pair_store import PairStore, Rows
from heedful.errors import InputError
from heedful.tasks.task import B, Scores, Task
from heedful.text.tokenizer import Tokenizer


@runtime_checkable
class ExampleStore(Protocol):
    """Interface of a store of examples: how long the input and the target of each are."""

    @property
    def files(self) -> tuple[MappedFile, ...]:
        """The mapped files."""
        ...

    @property
    def lengths(self) -> np.ndarray:
        """Positions of the input and of the target of each example, shape (n, 2)."""
        ...

    def __len__(self) -> int: ...


S = TypeVar("S", bound=ExampleStore)


class ExampleTask(Task[B], Generic[B, S]):
    """Base class of tasks on stored examples; a subclass defines how examples are prepared and read."""

    families = ("encoder", "decoder")

    def __init__(self, recipe: Recipe, examples: PreparedData[S]) -> None:
        super().__init__(recipe, examples.tokenizers, examples.digest)
        self.examples = examples
        lengths = [self.lengths(store) for store in examples.train]
        self.plan = BatchPlan(lengths, examples.weights, recipe.train.batch_tokens, recipe.train.seed)

    def check_data(self) -> None:
        """Check that the prepared data has not changed since it was opened."""
        self.examples.check_unchanged()

    @abstractmethod
    def read(self, stores: Sequence[S], ids: np.ndarray, epoch: int | None, device: torch.device) -> B:
        """Read the examples of a batch by their numbers, which count through all stores.

        Args:
            stores: the stores.
            ids: the numbers.
            epoch: the epoch, a key of what is random in training; None in validation: nothing is random.
            device: where the batch goes.
        """

    def lengths(self, store: S) -> np.ndarray:
        """Numbers of positions that the model reads from both sides of each example, shape (n, 2)."""
        return store.lengths

    def epoch(self, number: int) -> list[np.ndarray]:
        """List the batches of an epoch, with examples of similar length in each."""
        return self.plan.epoch(number)

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch in tokens of its longest side, padding included."""
        return self.plan.cells(ids)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        """Read the examples of one batch of training."""
        return self.read(self.examples.train, ids, epoch, device)

    def validate(self, model: torch.nn.Module) -> Scores | None:
        """Score the model on the validation set: the scores of the task, and the loss."""
        store = self.examples.valid
        if store is None:
            return None
        losses = self.summary(self.mean_losses(model, self.batches_of(store, model)))
        if scores := self.scores_of_nan(losses):
            return scores
        outcomes = self.outcomes(model)
        self.classes = outcomes.classes
        return outcomes.scores | losses

    @property
    def valid(self) -> tuple[CorpusConfig, S]:
        """The validation set of the task: its corpus, and its prepared examples.

        Raises:
            InputError: there is no validation set.
        """
        corpus, store = self.recipe.data.valid, self.examples.valid
        if corpus is None or store is None:
            raise InputError("the recipe names no validation data; set data.valid")
        return corpus, store

    def valid_plan(self, store: S) -> list[np.ndarray]:
        """Plan batches of all examples of a store, each as the numbers of its examples, in a fixed order."""
        return BatchPlan([self.lengths(store)], [1.0], self.recipe.train.batch_tokens, seed=0).epoch(0)

    def batches_of(self, store: S, model: torch.nn.Module) -> Iterator[B]:
        """Iterate over batches of all examples of a store, in a fixed order."""
        device = next(model.parameters()).device
        plan = self.progress.part("batches", self.valid_plan(store))
        return (self.read([store], ids, None, device) for ids in plan)

    def results_of(self, model: torch.nn.Module, result: Callable[[B], torch.Tensor]) -> np.ndarray:
        """Run a model on the validation examples; return the results in order, one row of `result` for each."""
        _, store = self.valid
        own = [result(batch).cpu().numpy() for batch in self.reducer.share(self.batches_of(store, model))]
        told = self.reducer.in_order([(rows.dtype.str, rows.tolist()) for rows in own])
        found = np.concatenate([np.array(rows, dtype) for dtype, rows in told])
        return found[np.argsort(np.concatenate(self.valid_plan(store)))]


class RowTask(ExampleTask[B, PairStore]):
    """Base class of tasks on examples of two rows of tokens; a subclass defines how they are encoded and batched."""

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe has what the examples need; see `heedful.data.preparation.examples.check_examples`."""
        check_examples(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the texts of a corpus, to find errors in its files early."""
        check_files(corpus, recipe.data)
        return at_least_one(cls.texts(corpus, recipe), corpus.source, DropReport())

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """Prepare the examples of a recipe, or read prepared ones, and create the task."""
        resolved = cls.resolve(recipe)

        def rows(corpus: CorpusConfig, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
            return cls.rows(corpus, resolved, tokenizer, drops)

        def texts(corpus: CorpusConfig) -> Iterator[str]:
            return cls.texts(corpus, recipe)

        return cls(resolved, prepare_examples(recipe, folder, texts, rows, report))

    @staticmethod
    @abstractmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Iterate over the texts of a corpus, for the training of a tokenizer."""

    @staticmethod
    @abstractmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each example of a corpus as two rows of ids; `drops` counts the examples that are left out."""

    @abstractmethod
    def collate(self, first: np.ndarray, second: np.ndarray, device: torch.device) -> B:
        """Collate padded rows, (B, S) and (B, T), into a batch."""

    def read(self, stores: Sequence[PairStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> B:
        """Assemble the examples of one batch; nothing in the batch is random."""
        return self.collate(*assemble(stores, ids), device)
