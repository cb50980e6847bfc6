"""What tasks on texts share: each example is one row of tokens, of a text or a pair, and one row of targets.

B batch, S tokens, T targets.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.batches import BatchPlan, assemble
from heedful.data.examples import Examples, prepare_examples
from heedful.data.filters import DropReport
from heedful.data.store import PairStore, Rows
from heedful.tasks.task import Task
from heedful.text.pair import TokenizerPair
from heedful.text.sequence import segments
from heedful.text.tokenizer import PAD, Tokenizer


@dataclass(frozen=True)
class Batch:
    """Padded texts and their targets."""

    ids: Int[Tensor, "B S"]
    keep: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    targets: Int[Tensor, "B T"]
    tokens: int
    counts: tuple[int, ...]  # of decisions, which the loss is a mean over


def collate(ids: np.ndarray, targets: np.ndarray, decisions: int, device: torch.device) -> Batch:
    """Make a batch of padded rows of ids, (B, S), and of targets, (B, T)."""
    return Batch(
        ids=torch.from_numpy(ids).to(device),
        keep=torch.from_numpy(ids != PAD).to(device),
        segments=torch.from_numpy(segments(ids)).to(device),
        targets=torch.from_numpy(targets).to(device),
        tokens=int((ids != PAD).sum()),
        counts=(decisions,),
    )


class TextTask(Task[Batch]):
    """A task on texts. What it adds is how a corpus is read, the model, the loss and the scores."""

    families = ("encoder", "decoder")
    command = "heedful predict"

    def __init__(self, recipe: Recipe, examples: Examples) -> None:
        super().__init__(recipe, TokenizerPair(examples.tokenizer, examples.tokenizer), examples.digest)
        self.examples = examples
        lengths = [np.repeat(store.lengths[:, :1], 2, axis=1) for store in examples.train]
        self.plan = BatchPlan(lengths, examples.weights, recipe.train.batch_tokens, recipe.train.seed)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """See `heedful.data.examples`."""
        resolved = cls.resolve(recipe)
        texts = (text for corpus in recipe.data.train for text in cls.texts(corpus, recipe))
        return cls(resolved, prepare_examples(resolved, folder, texts, cls.rows, report))

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in what the training data decides, such as the classes."""
        return recipe

    @staticmethod
    @abstractmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """The texts of a corpus, for a tokenizer to be trained on."""

    @staticmethod
    @abstractmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """The examples of a corpus as ids and targets; `drops` counts those that are left out."""

    @staticmethod
    def decisions(targets: np.ndarray) -> int:
        """How many decisions there are in a batch: one for each row of targets, (B, T)."""
        return len(targets)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batches of texts of similar length."""
        return self.plan.epoch(number)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> Batch:
        """The texts of one batch; nothing in it is random."""
        return self.gather(self.examples.train, ids, device)

    def gather(self, stores: Sequence[PairStore], ids: np.ndarray, device: torch.device) -> Batch:
        """Some examples of stores as a batch."""
        rows, targets = assemble(stores, ids)
        return collate(rows, targets, self.decisions(targets), device)

    def batches_of(self, store: PairStore, model: torch.nn.Module) -> Iterator[Batch]:
        """All examples of a store in an order that is always the same."""
        device = next(model.parameters()).device
        lengths = np.repeat(store.lengths[:, :1], 2, axis=1)
        plan = BatchPlan([lengths], [1.0], self.recipe.train.batch_tokens, seed=0)
        return (self.gather([store], ids, device) for ids in plan.epoch(0))
