"""Tasks: a kind of training, put together from data, model, objective, metrics and predictor.

The training loop and the commands know a task only by the interface that is here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np
import torch

from heedful.architectures import Model
from heedful.architectures.backbone import families_of
from heedful.config.schema import Modality, Recipe
from heedful.distributed import SINGLE_PROCESS, Reducer
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.metrics.metric import Metric, find_metric, is_computed
from heedful.progress import ProgressReporter, silent
from heedful.registry import ARCHITECTURES
from heedful.tasks.dataset import B, Batch, Dataset
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.metrics.bootstrap import ExampleScores
    from heedful.metrics.metric import Outputs
    from heedful.predictors import AnyPredictor

__all__ = ["ALONE", "B", "Batch", "Evaluation", "Mean", "Results", "Scores", "Task", "check"]

Scores = dict[str, float]

NOTHING_TO_PREDICT = (
    "nothing in this text can be predicted, as its tokens are unknown to the model or its texts too short; its scores "
    "are no numbers"
)


@dataclass(frozen=True)
class Mean:
    """Mean of one term of the loss over many batches, in nats."""

    loss: float  # the loss that is trained on, label smoothing included
    nll: float  # the negative log-likelihood

    @classmethod
    def of(cls, loss: float, nll: float, count: int | float) -> "Mean":
        """Divide the sums of a term of the loss by its number of predictions; NaN if there are none."""
        return cls(loss / count, nll / count) if count else cls(math.nan, math.nan)


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation needs from the program around it.

    Attributes:
        reducer: Shares the batches among the processes of a run, and joins what they computed.
        progress: Reports the progress.
        warn: Called with remarks on the data that is scored.
        is_test: True for a test, whose texts are decoded as the recipe says; a validation decodes greedily.
    """

    reducer: Reducer = SINGLE_PROCESS
    progress: ProgressReporter = field(default_factory=lambda: silent("evaluating"))
    warn: Callable[[str], object] = lambda _: None
    is_test: bool = False

    def batches(self, data: Dataset[B], model: torch.nn.Module) -> Iterator[B]:
        """Iterate over the batches of the validation or test set on the device of a model."""
        device = next(model.parameters()).device
        plan = self.progress.part("batches", data.valid_plan() or ())
        return (data.valid_batch(ids, device) for ids in plan)

    def mean_losses(self, task: "Task[B]", model: Any, batches: Iterable[B]) -> list[Mean]:
        """Compute the mean of each term of the loss over all batches, of which each process computes its share.

        The mean of a term is NaN if the batches have nothing to predict, as where every token is unknown.
        """
        own = [
            [(term.sum.item(), term.nll.item(), term.count) for term in task.loss(model, batch)]
            for batch in self.reducer.shard(batches)
        ]
        # Added up in the order of the batches, the sums do not depend on the number of processes.
        sums = np.array(self.reducer.all_gather_in_order(own), dtype=np.float64).sum(axis=0)  # (terms, 3)
        if not sums[:, 2].all():
            self.warn(NOTHING_TO_PREDICT)
        return [Mean.of(*row) for row in sums.tolist()]

    def per_example(self, data: Dataset[B], model: torch.nn.Module, compute: Callable[[B], torch.Tensor]) -> np.ndarray:
        """Run a model on all batches; return the results in the order of the examples, a row of `compute` for each."""
        own = [compute(batch).cpu().numpy() for batch in self.reducer.shard(self.batches(data, model))]
        rows = self.reducer.all_gather_in_order([(part.dtype.str, part.tolist()) for part in own])
        results = np.concatenate([np.array(values, dtype) for dtype, values in rows])
        # Batches hold examples of similar length: back to the order of the examples.
        return results[np.argsort(np.concatenate(data.valid_plan() or ()))]


@dataclass(frozen=True)
class Results:
    """Results of an evaluation: all scores, and what those that are made of single examples are resampled from."""

    scores: Scores
    outcomes: "ExampleScores | None" = None


ALONE = Evaluation()  # in one process, without reports


class Task(ABC, Generic[B]):
    """Base class of tasks: a subclass names the parts that a kind of training is put together from.

    Attributes:
        modality: What the models read: text, images ("image"), audio ("audio") or videos ("video").
        families: The model families that can learn the task, by their names in a recipe.
        command: The command that uses models of the task on the command line; empty: there is none, only Python.
        example: An example of arguments for that command.
        pair_field: The column of a second text in tables, where the recipe names none.
        dataset: The class of the data.
        metrics: The names of the scores; the first selects the best checkpoint unless the recipe does. Those of
            `heedful.metrics.metric` are computed from `outputs`, others, such as the loss, come with the objective.
        predicts: The class of `outputs`; None: all scores come with the objective.
        data: The data that is open.
        recipe: Its recipe.
        tokenizers: Its tokenizers.
    """

    modality: ClassVar[Modality] = "text"
    families: ClassVar[tuple[str, ...]]
    command: ClassVar[str] = ""
    example: ClassVar[str] = "'Some text.'"
    pair_field: ClassVar[str | None] = None
    dataset: ClassVar[type[Dataset[Any]]]
    metrics: ClassVar[tuple[str, ...]]
    predicts: ClassVar["type[Outputs] | None"] = None

    def __init__(self, data: Any) -> None:
        self.data = data
        self.recipe: Recipe = data.recipe
        self.tokenizers: TokenizerPair = data.tokenizers

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """Create the task with the data of a recipe; see `Dataset.prepare`."""
        return cls(cls.dataset.prepare(recipe, folder, report))

    @staticmethod
    @abstractmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> Model:
        """Build a new model with random weights, drawn from torch's global generator."""

    @staticmethod
    @abstractmethod
    def use(model: Any, recipe: Recipe, tokenizers: TokenizerPair) -> "AnyPredictor":
        """Create the predictor of a trained model, such as a translator, a generator or a classifier."""

    @abstractmethod
    def loss(self, model: Any, batch: B) -> tuple[Loss, ...]:
        """Compute the terms of the loss for a batch; the total is the sum of their means over the batch's `counts`."""

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute the scores that come with the objective from the mean losses of all terms."""
        return {"loss": sum(mean.loss for mean in means)}

    def outputs(self, _model: Any, _run: Evaluation, /) -> "Outputs | None":
        """Return what a model makes of the validation or test set, with what is expected; None: only losses count."""
        return None

    def evaluate(self, model: Any, run: Evaluation = ALONE) -> Results | None:
        """Score a model in evaluation mode on the validation or test set that is open; None without one.

        If a loss is not finite, all scores are NaN, which is never the best.
        """
        if self.data.valid_plan() is None:
            return None
        losses = self.summary(run.mean_losses(self, model, run.batches(self.data, model)))
        if not all(map(math.isfinite, losses.values())):
            return Results(dict.fromkeys(score_names(type(self), self.recipe), math.nan) | losses)
        outputs = self.outputs(model, run)
        if outputs is None:
            return Results(losses)
        from heedful.metrics.bootstrap import example_scores

        outcomes = example_scores(outputs, output_metrics(type(self), self.recipe))
        return Results((outcomes.whole or {}) | losses, outcomes)


def score_names(task: type[Task], recipe: Recipe) -> tuple[str, ...]:
    """List the names of the scores of a recipe's task: those of `evaluate.metrics`, or else those of the task."""
    if not recipe.evaluate.metrics:
        return task.metrics
    kind = task.predicts.kind if task.predicts else ""
    return (*recipe.evaluate.metrics, *(name for name in task.metrics if not is_computed(name, kind)))


def output_metrics(task: type[Task], recipe: Recipe) -> dict[str, Metric]:
    """Find the metrics of a recipe's task that are computed from the outputs of a model, by name."""
    if task.predicts is None:
        return {}
    kind = task.predicts.kind
    return {name: find_metric(name, kind) for name in score_names(task, recipe) if is_computed(name, kind)}


def best_score(task: type[Task], recipe: Recipe) -> str:
    """Name of the score that selects the best checkpoint: that of the recipe, else the first that is measured."""
    if recipe.train.best is not None:
        return recipe.train.best
    return score_names(task, recipe)[0] if recipe.train.validate_decoding else "loss"


def usage(task: type[Task], model: Path) -> str:
    """Return an example of how a trained model is used: a command, or Python for a task without one."""
    return f"{task.command} --model {model} {task.example}" if task.command else f'heedful.load("{model}")'


def check(task: type[Task], recipe: Recipe) -> None:
    """Check that a recipe's modality, model family and `train.best` fit its task, or raise an InputError."""
    if recipe.data.modality != task.modality:
        raise InputError(
            f'data.modality = "{recipe.data.modality}", and a model for the task "{recipe.task}" reads '
            f'"{task.modality}"; leave data.modality out'
        )
    architecture, learners = recipe.model.architecture, " or ".join(task.families)
    families = families_of(architecture)
    able = [family for family in task.families if family in families]
    if not able:
        is_own = ARCHITECTURES.is_own(architecture)
        remedy = remedy_of_own(task) if is_own else "take another architecture, or another task"
        raise InputError(
            f'task = "{recipe.task}" is learned by a model of family {learners}, and model.architecture = '
            f'"{architecture}" has models of family {" or ".join(families)} only; {remedy}'
        )
    if recipe.model.family not in able:
        raise InputError(
            f'task = "{recipe.task}" is learned by a model of family {learners}, and model.family is '
            f'"{recipe.model.family}"; set model.family = "{able[0]}"'
        )
    names = score_names(task, recipe)
    if recipe.train.best not in (None, *names):
        raise InputError(
            f'train.best = "{recipe.train.best}": task = "{recipe.task}" has the scores {", ".join(names)}; '
            "choose one of them"
        )


def check_metrics(task: type[Task], recipe: Recipe) -> None:
    """Check that the metrics that a recipe names can be computed from the outputs of its task."""
    if recipe.evaluate.metrics and task.predicts is None:
        raise InputError(
            f'evaluate.metrics: task = "{recipe.task}" has the scores {", ".join(task.metrics)} and no others; leave '
            "it out"
        )
    for name in recipe.evaluate.metrics:
        find_metric(name, task.predicts.kind if task.predicts else "")


BASE_CLASSES = {  # what a custom class extends to be of a family
    "encoder_decoder": "heedful.architectures.SourceToTarget",
    "encoder": "heedful.architectures.backbone.EncoderOnly",
    "decoder": "heedful.architectures.backbone.DecoderOnly",
    "word_vectors": "heedful.architectures.word2vec.model.Word2Vec",
}


def remedy_of_own(task: type[Task]) -> str:
    """Say which class of heedful a custom architecture has to extend for a task."""
    bases = " or ".join(BASE_CLASSES[family] for family in task.families)
    return f"let the class extend {bases}, or take another task"
