"""Metrics, and the model outputs that they are computed from; the registry lists all metrics by name.

A metric is computed from the `Outputs` of a model on a test set. Confidence intervals and significance tests need its
score on many resamples of the test set. If a metric computes a number or a row of counts for each example, these are
computed once and combined for each resample. If it computes a single number from all outputs, it is computed again for
each resample.
"""

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from heedful.config.user_code import find_object
from heedful.errors import InputError
from heedful.registry import METRICS
from heedful.wording import did_you_mean

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

LOSSES = ("loss", "perplexity", "byte_perplexity", "next_sentence_loss", "rmse")  # scores of a task's objective


@dataclass(frozen=True)
class Outputs(ABC):
    """Outputs of a model on the N examples of a test set, with the expected outputs; one subclass per kind.

    `columns` lists the fields with one item per example, in an array or a list.
    """

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def select(self, examples: np.ndarray) -> Any:
        """Return the outputs of the examples with these indices, int64, which may repeat."""
        columns = {name: getattr(self, name) for name in self.columns}
        selection = {
            name: column[examples] if isinstance(column, np.ndarray) else [column[row] for row in examples.tolist()]
            for name, column in columns.items()
        }
        return replace(self, **selection)

    def groups(self) -> np.ndarray | None:
        """Return the group index of each example, int64, (N,); None if all examples are independent.

        A group is resampled as a whole.
        """
        return None

    def report(self) -> "ClassReport | None":
        """Return the report with scores for each class; None if the outputs are not classes."""
        return None


def mean(rows: np.ndarray) -> float:
    """Return the mean of per-example scores, (n,)."""
    return float(rows.mean())


@dataclass(frozen=True)
class Metric:
    """Metric of the outputs of a model.

    Attributes:
        compute: Computes the score from outputs or, with `total`, a number or a row of counts for each example. A score
            that is undefined for these outputs is None, and is left out.
        total: Computes the score from the rows of any examples, which may repeat; None if `compute` returns the score.
        lower_is_better: True if a lower score is better.
        resampled: False if repeated examples would distort the score, as with the diversity of texts.
    """

    compute: Callable[[Any], Any]
    total: Callable[[np.ndarray], float] | None = None
    lower_is_better: bool = False
    resampled: bool = True


def per_example(compute: Callable[[Any], Sequence[float] | np.ndarray]) -> Metric:
    """Create a metric that is the mean of per-example scores, which `compute` returns."""
    return Metric(compute, mean)


def of_sums(compute: Callable[[Any], Any], ratio: Callable[..., float], *, lower_is_better: bool = False) -> Metric:
    """Create a metric that `ratio` computes from sums of counts; `compute` returns a row of counts for each example."""
    return Metric(compute, lambda rows: ratio(*rows.sum(axis=0).tolist()), lower_is_better)


def find_metric(name: str, kind: str) -> Metric:
    """Find a metric for one kind of outputs: one of `METRICS`, or a custom `Metric` as "module:object".

    The module of a custom metric is not imported, because an untrusted model folder may name it: see
    `heedful.config.user_code`.

    Raises:
        InputError: The metric is unknown for these outputs, or its module has not been imported.
    """
    if ":" in name:
        return find_object("evaluate.metrics", name, Metric, "heedful.metrics.metric.Metric")
    key = registered_name(name, kind)
    if key is None:
        names = names_of(kind)
        near = get_close_matches(name, names) or names
        raise InputError(f'evaluate.metrics: unknown metric "{name}" for {kind}; {did_you_mean(near)}')
    metric = METRICS[key]
    if not isinstance(metric, Metric):
        raise InputError(f'evaluate.metrics = "{name}": the registered object is not a {Metric.__module__}.Metric')
    return metric


def names_of(kind: str) -> list[str]:
    """List the names of the metrics for one kind of outputs."""
    return [name.removeprefix(f"{kind}.") for name in METRICS if name.startswith(f"{kind}.") or "." not in name]


def is_computed(name: str, kind: str) -> bool:
    """Return True if a score is a metric for one kind of outputs, not a score of the objective, such as the loss."""
    return ":" in name or registered_name(name, kind) is not None


def registered_name(name: str, kind: str) -> str | None:
    """Return the registry name of a metric for one kind of outputs; None if it is not registered.

    A metric that another package registers need not have the kind in its name.
    """
    return next((key for key in (f"{kind}.{name}", name) if key in METRICS), None)


def lower_is_better(name: str) -> bool:
    """Return True if a lower score with this name is better, and False if the name is unknown.

    All metrics with the same name agree on this.

    Raises:
        InputError: The metric is custom, and its module has not been imported.
    """
    if ":" in name:
        return find_metric(name, "").lower_is_better
    if name in LOSSES:
        return True
    key = next((key for key in METRICS if key.rpartition(".")[2].lower() == name.lower()), None)
    return key is not None and METRICS[key].lower_is_better
