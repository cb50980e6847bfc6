"""What the training loop, and whoever uses a trained model, asks of a task."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import nn

from heedful.config.schema import CorpusConfig, Recipe
from heedful.errors import InputError
from heedful.evaluate.resampling import Outcomes
from heedful.losses import Loss
from heedful.progress import silent
from heedful.text.tokenizer_pair import TokenizerPair

Scores = dict[str, float]

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "byte_perplexity", "next_sentence_loss"})


@runtime_checkable
class Batch(Protocol):
    """Examples that go through the model together."""

    @property
    def tokens(self) -> int:
        """Real tokens that the model reads, which is how speed is measured."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """For each term of the loss, what its sum is divided by: target tokens, or examples."""
        ...


B = TypeVar("B", bound=Batch)


@dataclass(frozen=True)
class Mean:
    """One term of the loss over many batches, in nats."""

    loss: float  # what is trained on, label smoothing included
    nll: float  # the negative log-likelihood


class Task(ABC, Generic[B]):
    """What is learned, from which examples, and how well.

    Attributes:
        families: the model families that can learn it, by their names in a recipe.
        command: what uses its models on the command line.
        example: what may be written behind it.
        pair_field: the column of a second text in tables that its models read, where the recipe names none.
        scores: what `validate` may report; the first decides which checkpoint is best unless the recipe does.
        recipe: the recipe with what the data decides filled in, such as the classes.
        tokenizers: text to ids; where there is one kind of text, both are the same.
        digest: SHA-256 of all that the prepared data depends on.
        progress: told what `validate` and `test` have done.
    """

    families: ClassVar[tuple[str, ...]]
    command: ClassVar[str]
    example: ClassVar[str] = "'Some text.'"
    pair_field: ClassVar[str | None] = None
    scores: ClassVar[tuple[str, ...]]
    tell: Callable[[str], object] = staticmethod(lambda _: None)  # told what is odd about the text of a test

    def __init__(self, recipe: Recipe, tokenizers: TokenizerPair, digest: str) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.digest = digest
        self.progress = silent("evaluating")

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in what the training data decides, such as the classes; what is filled in already stays.

        Raises:
            InputError: the data cannot be used.
        """
        return recipe

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Refuse a recipe that does not say what `prepare` needs, such as a tokenizer; no text is read.

        Raises:
            InputError: something is missing or cannot work.
        """

    @classmethod
    def peek(cls, _corpus: CorpusConfig, _recipe: Recipe, /) -> Iterator[object]:
        """The examples of a corpus as its files say, before anything is encoded: what is wrong is found early there.

        Raises:
            InputError: as `prepare`, of what has been read so far.
        """
        return iter(())

    @classmethod
    @abstractmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> "Task":
        """Read the data of a recipe: from `folder` if it was prepared there before, otherwise from the files it names.

        Raises:
            InputError: the data cannot be used.
            RunError: `folder` cannot be written.
        """

    @classmethod
    @abstractmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> nn.Module:
        """A freshly initialised model; the draw comes from torch's global generator."""

    @classmethod
    @abstractmethod
    def use(cls, model: Any, recipe: Recipe, tokenizers: TokenizerPair) -> Any:
        """What makes a trained model useful: a translator, a generator, a classifier."""

    def initialise(self, model: Any) -> None:
        """Put what the recipe names, such as word vectors, into a freshly built model."""

    @abstractmethod
    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """The batches of an epoch in order, each as the ids of its examples: a pure function of recipe and number."""

    @abstractmethod
    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        """Read the examples of one batch: a pure function, too, whatever in it is random."""

    @abstractmethod
    def loss(self, model: Any, batch: B) -> tuple[Loss, ...]:
        """The terms of the loss, whose means are added, each over the batch's `counts` of it."""

    @abstractmethod
    def validate(self, model: Any) -> Scores | None:
        """The scores of a model in evaluation mode on the validation set; None where there is none."""

    def test(self, model: Any) -> Scores | None:
        """The scores of a model on the same set when it is tested: those of `validate` unless that takes short cuts."""
        return self.validate(model)

    def outcomes(self, _model: Any, /) -> Outcomes:
        """The results on each example of the validation set, from which scores follow, for a comparison of two models.

        Raises:
            InputError: no score follows from examples, as with the perplexity of running text.
        """
        raise InputError(
            f'two models for the task "{self.recipe.task}" cannot be compared by resampling, as its scores '
            f"({', '.join(self.scores)}) are not made of single examples; evaluate each model by itself"
        )

    def summary(self, means: Sequence[Mean]) -> Scores:
        """What to say of mean losses; there is one for each term."""
        return {"loss": sum(mean.loss for mean in means)}

    def mean_losses(self, model: Any, batches: Iterable[B]) -> list[Mean]:
        """The mean of each term of the loss over all batches."""
        terms = [
            [(term.sum.item(), term.nll.item(), term.count) for term in self.loss(model, batch)] for batch in batches
        ]
        sums = np.array(terms, dtype=np.float64).sum(axis=0)
        return [Mean(total / max(count, 1), nll / max(count, 1)) for total, nll, count in sums.tolist()]

    @property
    def best(self) -> str:
        """The score that the best checkpoint has the best of."""
        return self.recipe.train.best or self.scores[0]


def merit(scores: Scores, name: str) -> float:
    """A number that is larger for better scores; minus infinity for one that is not a number.

    Raises:
        InputError: there is no such score.
    """
    if name not in scores:
        raise InputError(f'train.best = "{name}": this run has the scores {", ".join(scores)}; choose one of them')
    if not math.isfinite(scores[name]):
        return -math.inf
    return -scores[name] if name in LOWER_IS_BETTER else scores[name]


def check(task: type[Task], recipe: Recipe) -> None:
    """Whether a recipe goes with its task.

    Raises:
        InputError: the model is of a family that cannot learn the task, or the task has no such score.
    """
    if recipe.model.family not in task.families:
        raise InputError(
            f'task = "{recipe.task}" is learned by a model of family {" or ".join(task.families)}, and model.family is '
            f'"{recipe.model.family}"; set model.family = "{task.families[0]}"'
        )
    if recipe.train.best not in (None, *task.scores):
        raise InputError(
            f'train.best = "{recipe.train.best}": task = "{recipe.task}" has the scores {", ".join(task.scores)}; '
            "choose one of them"
        )
