"""Base class of all tasks: the interface that the training loop and the predictors use."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, Modality, Recipe
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.models import Model
from heedful.models.architectures import families_of
from heedful.parallel import SINGLE_PROCESS, Reducer
from heedful.progress import silent
from heedful.registry import ARCHITECTURES
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.evaluate.class_report import ClassReport
    from heedful.evaluate.significance import Outcomes
    from heedful.predict import AnyPredictor

Scores = dict[str, float]

NOTHING_TO_PREDICT = (
    "nothing in this text can be predicted, as its tokens are unknown to the model or its texts too short; its scores "
    "are no numbers"
)


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


@dataclass(frozen=True)
class Mean:
    """Mean loss, and mean negative log-likelihood, of one term of the loss over many batches, in nats."""

    loss: float  # the loss that is trained on, label smoothing included
    nll: float  # the negative log-likelihood

    @classmethod
    def of(cls, loss: float, nll: float, count: int | float) -> "Mean":
        """Divide the sums of a term of the loss by its number of predictions; NaN if there are none."""
        return cls(loss / count, nll / count) if count else cls(math.nan, math.nan)


class Task(ABC, Generic[B]):
    """Base class of tasks: defines the examples, batches, model, loss and scores of one kind of training.

    Attributes:
        modality: what the models read: text, pictures ("image"), sound ("audio") or videos ("video").
        families: the model families that can learn the task, by their names in a recipe.
        command: the command that uses models of the task on the command line; empty: there is none, only Python.
        example: an example of arguments for that command.
        pair_field: the column of a second text in tables, where the recipe names none.
        reads_files: True if a batch takes long to read, as files have to be decoded for it.
        scores: the scores that `validate` may report; the first selects the best checkpoint unless the recipe does. Of
            each the largest is best, except those in `heedful.evaluate.significance.LOWER_IS_BETTER`.
        recipe: the recipe with what the data decides filled in, such as the classes.
        tokenizers: the tokenizers of source and target; for tasks on one kind of text both are the same.
        digest: SHA-256 of all that the prepared data depends on.
        tell: called with remarks on the text that is scored.
        progress: reports the progress of `validate` and `test`.
        reducer: shares the validation set among the processes of a run, and joins what they found.
        classes: the report class by class of the last validation or test; None for a task without classes.
    """

    modality: ClassVar[Modality] = "text"
    families: ClassVar[tuple[str, ...]]
    command: ClassVar[str] = ""
    example: ClassVar[str] = "'Some text.'"
    pair_field: ClassVar[str | None] = None
    reads_files: ClassVar[bool] = False
    scores: ClassVar[tuple[str, ...]]
    tell: Callable[[str], object] = staticmethod(lambda _: None)
    classes: "ClassReport | None" = None

    def __init__(self, recipe: Recipe, tokenizers: TokenizerPair, digest: str) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.digest = digest
        self.progress = silent("evaluating")
        self.reducer: Reducer = SINGLE_PROCESS

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in settings of a recipe that the training data decides, such as the classes; settings made already stay.

        Raises:
            InputError: the data cannot be used.
        """
        return recipe

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe has what `prepare` needs, such as a tokenizer; no text is read.

        Raises:
            InputError: something is missing or cannot work.
        """

    @classmethod
    def peek(cls, _corpus: CorpusConfig, _recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the raw examples of a corpus, before they are encoded, to find errors in its files early.

        Raises:
            InputError: as for `prepare`, about the examples read so far.
        """
        return iter(())

    @classmethod
    @abstractmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> "Task":
        """Read the data of a recipe, from `folder` if prepared there before, else from its files, and create the task.

        Raises:
            InputError: the data cannot be used.
            RunError: `folder` cannot be written.
        """

    @classmethod
    @abstractmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> Model:
        """Build a new model with random weights, drawn from torch's global generator."""

    @classmethod
    @abstractmethod
    def use(cls, model: Any, recipe: Recipe, tokenizers: TokenizerPair) -> "AnyPredictor":
        """Create the predictor of a trained model, such as a translator, a generator or a classifier."""

    @classmethod
    def usage(cls, model: Path) -> str:
        """Give an example of how a trained model is used: a command, or Python for a task without one."""
        return f"{cls.command} --model {model} {cls.example}" if cls.command else f'heedful.load("{model}")'

    def data_remarks(self) -> list[str]:
        """List what a user should know about the prepared data before training, such as that one class dominates."""
        return []

    def check_data(self) -> None:
        """Check that the prepared data has not changed since it was opened; a task of your own may leave it out.

        Raises:
            RunError: a file has changed.
        """

    def initialise(self, model: Any) -> None:
        """Copy the word vectors that the recipe names into a newly built model.

        Raises:
            InputError: they cannot be read, do not fit the model, or it reads no tokens.
        """
        if self.recipe.model.source_vectors is not None or self.recipe.model.target_vectors is not None:
            from heedful.models.word_vectors import place_vectors

            place_vectors(model, self.recipe, self.tokenizers, self.tell)

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
    def loss(self, model: Any, batch: B) -> tuple[Loss, ...]:
        """Compute the terms of the loss for a batch; the total is the sum of their means over the batch's `counts`."""

    @abstractmethod
    def validate(self, model: Any) -> Scores | None:
        """Score a model in evaluation mode on the validation set; None without a validation set."""

    def test(self, model: Any) -> Scores | None:
        """Score a model on the test set, loaded in place of the validation set; as `validate` unless overridden."""
        return self.validate(model)

    def outcomes(self, _model: Any, /) -> "Outcomes":
        """Score each example of the validation set by itself, for a comparison of two models by resampling.

        Raises:
            InputError: no score can be computed from single examples, as with the perplexity of running text.
        """
        raise InputError(
            f'two models for the task "{self.recipe.task}" cannot be compared by resampling, as its scores '
            f"({', '.join(self.scores)}) are not made of single examples; evaluate each model by itself"
        )

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute the scores to log from the mean losses of all terms."""
        return {"loss": sum(mean.loss for mean in means)}

    def mean_losses(self, model: Any, batches: Iterable[B]) -> list[Mean]:
        """Compute the mean of each term of the loss over all batches, of which each process computes its share.

        The mean of a term is NaN if the batches have nothing to predict, as where every token is unknown.
        """
        own = [
            [(term.sum.item(), term.nll.item(), term.count) for term in self.loss(model, batch)]
            for batch in self.reducer.share(batches)
        ]
        sums = np.array(self.reducer.in_order(own), dtype=np.float64).sum(axis=0)
        if not sums[:, 2].all():
            self.tell(NOTHING_TO_PREDICT)
        return [Mean.of(*row) for row in sums.tolist()]

    def scores_of_nan(self, losses: Scores) -> Scores | None:
        """Return all scores as NaN, which is never the best, if a loss is not finite; None if they can be computed."""
        finite = all(map(math.isfinite, losses.values()))
        return None if finite else dict.fromkeys(self.scores, math.nan) | losses

    @property
    def best(self) -> str:
        """Name of the score that selects the best checkpoint."""
        return self.recipe.train.best or self.scores[0]


def check(task: type[Task], recipe: Recipe) -> None:
    """Check that a recipe's modality, model family and `train.best` fit its task.

    Raises:
        InputError: the model reads something else, is of a family that cannot learn the task, or the task has no such
            score.
    """
    if recipe.data.modality != task.modality:
        raise InputError(
            f'data.modality = "{recipe.data.modality}", and a model for the task "{recipe.task}" reads '
            f'"{task.modality}"; leave data.modality out'
        )
    architecture, learners = recipe.model.architecture, " or ".join(task.families)
    families = families_of(architecture)
    able = [family for family in task.families if family in families]
    if not able:
        raise InputError(
            f'task = "{recipe.task}" is learned by a model of family {learners}, and model.architecture = '
            f'"{architecture}" has models of family {" or ".join(families)} only; '
            + (
                remedy_of_own(task)
                if ARCHITECTURES.is_own(architecture)
                else "take another architecture, or another task"
            )
        )
    if recipe.model.family not in able:
        raise InputError(
            f'task = "{recipe.task}" is learned by a model of family {learners}, and model.family is '
            f'"{recipe.model.family}"; set model.family = "{able[0]}"'
        )
    if recipe.train.best not in (None, *task.scores):
        raise InputError(
            f'train.best = "{recipe.train.best}": task = "{recipe.task}" has the scores {", ".join(task.scores)}; '
            "choose one of them"
        )


EXTENDED = {  # what a class of the user's own extends to be of a family
    "encoder_decoder": "heedful.models.SourceToTarget",
    "encoder": "heedful.models.backbone.EncoderOnly",
    "decoder": "heedful.models.backbone.DecoderOnly",
    "word_vectors": "heedful.models.word2vec.Word2Vec",
}


def remedy_of_own(task: type[Task]) -> str:
    """Say which class of heedful a class of the user's own has to extend for a task."""
    return f"let the class extend {' or '.join(EXTENDED[family] for family in task.families)}, or take another task"
