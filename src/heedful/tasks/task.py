"""Base class of tasks, and how a model is evaluated on one.

A task is composed of five parts: data, model, objective, metrics and predictor. The training loop and the commands use
only the interface of `Task`: `prepare` opens the data; `build` builds the model; `loss` computes the objective in each
update; `evaluate` computes the scores, from `loss` and `outputs`; and `use` creates the predictor.
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
from heedful.config.schema import Recipe
from heedful.distributed.reducer import SINGLE_PROCESS, Reducer
from heedful.losses import Loss
from heedful.progress import ProgressReporter, silent
from heedful.tasks.dataset import B, Batch, Dataset
from heedful.tasks.specs import TaskSpec, output_metrics, score_names
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.metrics.bootstrap import ExampleScores
    from heedful.metrics.metric import Outputs
    from heedful.predictors import AnyPredictor

__all__ = ["ALONE", "B", "Batch", "Evaluation", "Mean", "Results", "Scores", "Task"]

Scores = dict[str, float]


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
    """Context of an evaluation, such as its processes and progress bar, with loops over the validation or test set.

    Attributes:
        reducer: Shares the batches among the processes of a run, and gathers their results.
        progress: Reports the progress.
        warn: Called with warnings about the scored data.
        is_test: True for a test, in which decoding follows the recipe; in a validation, it is greedy.
        predictor: A predictor from another engine, which decodes or scores texts instead of the model.
    """

    reducer: Reducer = SINGLE_PROCESS
    progress: ProgressReporter = field(default_factory=lambda: silent("evaluating"))
    warn: Callable[[str], object] = lambda _: None
    is_test: bool = False
    predictor: Any = None

    def batches(self, data: Dataset[B], model: torch.nn.Module) -> Iterator[B]:
        """Iterate over the batches of the validation or test set on the device of a model."""
        device = next(model.parameters()).device
        plan = self.progress.part("batches", data.valid_plan() or ())
        return (data.valid_batch(ids, device) for ids in plan)

    def mean_losses(self, loss: Callable[[Any, B], tuple[Loss, ...]], model: Any, batches: Iterable[B]) -> list[Mean]:
        """Compute the mean of each term of the loss over all batches; each process computes its share.

        The mean of a term is NaN if the batches have nothing to predict, for example because every token is unknown.
        """
        local = [
            [(term.sum.item(), term.nll.item(), term.count) for term in loss(model, batch)]
            for batch in self.reducer.shard(batches)
        ]
        # Added up in the order of the batches, so that the sums do not depend on the number of processes.
        sums = np.array(self.reducer.all_gather_in_order(local), dtype=np.float64).sum(axis=0)  # (terms, 3)
        if not sums[:, 2].all():
            self.warn(
                "nothing in this text can be predicted, because its tokens are unknown to the model or its texts are "
                "too short; its scores are NaN"
            )
        return [Mean.of(*row) for row in sums.tolist()]

    def per_example(self, data: Dataset[B], model: torch.nn.Module, compute: Callable[[B], torch.Tensor]) -> np.ndarray:
        """Run a model on all batches; return the rows from `compute`, one per example, in the order of examples."""
        local = [compute(batch).cpu().numpy() for batch in self.reducer.shard(self.batches(data, model))]
        # Gathered as JSON, which keeps numbers exact, but not their type.
        rows = self.reducer.all_gather_in_order([(part.dtype.str, part.tolist()) for part in local])
        results = np.concatenate([np.array(values, dtype) for dtype, values in rows])
        # Batches contain examples of similar length: restore the order of the examples.
        return results[np.argsort(np.concatenate(data.valid_plan() or ()))]


ALONE = Evaluation()  # in a single process, without reports


@dataclass(frozen=True)
class Results:
    """Results of an evaluation: all scores and, for bootstrap resampling, the results of each example."""

    scores: Scores
    outcomes: "ExampleScores | None" = None


class Task(ABC, Generic[B]):
    """Base class of tasks; a subclass supplies the five parts of which a task is composed.

    It must define the class attributes `spec` and `dataset` and the methods `build`, `use` and `loss`, and also
    `outputs` if a metric compares the model's predictions with what is expected.

    Attributes:
        spec: The families of the task's models, its scores and other facts.
        dataset: The class of the data.
        data: The open data, an instance of `dataset`.
        recipe: The recipe of the data.
        tokenizers: The tokenizers of the data.
    """

    spec: ClassVar[TaskSpec]
    dataset: ClassVar[type[Dataset[Any]]]

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
        """Build a new model with random weights, sampled with torch's global generator."""

    @staticmethod
    @abstractmethod
    def use(model: Any, recipe: Recipe, tokenizers: TokenizerPair) -> "AnyPredictor":
        """Create the predictor of a trained model, such as a translator, a generator or a classifier."""

    @abstractmethod
    def loss(self, model: Any, batch: B) -> tuple[Loss, ...]:
        """Compute the terms of the loss for a batch, each a sum and a count.

        Training minimises the sum of the terms' means. The counts must be the `counts` of the batch.
        """

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute scores, such as the perplexity, from the mean of each term of the loss, in training or validation."""
        return {"loss": sum(mean.loss for mean in means)}

    def outputs(self, _model: Any, _run: Evaluation, /) -> "Outputs | None":
        """Run a model on the validation or test set; return its predictions together with what is expected.

        Returns None if there are only the scores of `summary`.
        """
        return None

    def evaluate(self, model: Any, run: Evaluation = ALONE) -> Results | None:
        """Score a model in evaluation mode on the open validation or test set; return None without one.

        If a loss is not finite, all scores not computed from losses are NaN, which ranks below every other score.
        """
        if self.data.valid_plan() is None:
            return None
        losses = self.summary(run.mean_losses(self.loss, model, run.batches(self.data, model)))
        if not all(map(math.isfinite, losses.values())):
            return Results(dict.fromkeys(score_names(self.spec, self.recipe), math.nan) | losses)
        outputs = self.outputs(model, run)
        if outputs is None:
            return Results(losses)
        from heedful.metrics.bootstrap import example_scores

        outcomes = example_scores(outputs, output_metrics(self.spec, self.recipe))
        return Results((outcomes.whole or {}) | losses, outcomes)
