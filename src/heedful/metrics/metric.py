"""What a metric is, and the outputs of a model that metrics are computed from; the registry has all metrics by name.

A metric is computed from the `Outputs` of a model on a test set. How it is resampled, for confidence intervals and
significance tests, follows from what it computes: a number or a row of counts for each example, which are computed once
and put together for any resample; or one number for a whole set of outputs, which is computed anew for each resample.
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

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

LOSSES = ("loss", "perplexity", "byte_perplexity", "next_sentence_loss", "rmse")  # come with the objective of a task


@dataclass(frozen=True)
class Outputs(ABC):
    """Outputs of a model on the N examples of a test set, with what is expected of each; a subclass for each kind.

    Each field with an item for each example, an array or a list, is one of `columns`.
    """

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def select(self, examples: np.ndarray) -> Any:
        """Return the outputs of the examples with given numbers, int64, from 0, which may repeat."""
        columns = {}
        for name in self.columns:
            column = getattr(self, name)
            is_array = isinstance(column, np.ndarray)
            columns[name] = column[examples] if is_array else [column[number] for number in examples.tolist()]
        return replace(self, **columns)

    def groups(self) -> np.ndarray | None:
        """The number, from 0, of the group of each example: a group is resampled as a whole. None: each by itself."""
        return None

    def report(self) -> "ClassReport | None":
        """Make the report class by class; None where the outputs are not classes."""
        return None


def mean(rows: np.ndarray) -> float:
    """Mean of the scores of single examples, (n,)."""
    return float(rows.mean())


@dataclass(frozen=True)
class Metric:
    """Metric of the outputs of a model.

    Attributes:
        compute: Computes it from outputs: the score; or, with `total`, a number or a row of counts for each example.
            A score of None is left out: it is not defined for these outputs.
        total: Computes the score from such rows of any examples, which may repeat; None: `compute` gives the score.
        lower_is_better: True if a lower score is a better one.
        resampled: False if examples that repeat change what the score says, as they do of the variety of texts.
    """

    compute: Callable[[Any], Any]
    total: Callable[[np.ndarray], float] | None = None
    lower_is_better: bool = False
    resampled: bool = True


def per_example(compute: Callable[[Any], Sequence[float] | np.ndarray]) -> Metric:
    """Make a metric that is the mean of the scores of single examples; `compute` returns these."""
    return Metric(compute, mean)


def of_sums(compute: Callable[[Any], Any], ratio: Callable[..., float], *, lower_is_better: bool = False) -> Metric:
    """Make a metric that `ratio` computes from the sums of counts; `compute` returns a row of them per example."""
    return Metric(compute, lambda rows: ratio(*rows.sum(axis=0).tolist()), lower_is_better)


def find_metric(name: str, kind: str) -> Metric:
    """Find a metric of one kind of outputs: one of `METRICS`, or a `Metric` of the user's own as "module:object".

    Nothing is imported that a stranger's model folder may name: see `heedful.config.user_code`.

    Raises:
        InputError: there is no such metric of these outputs, or its module has not been imported.
    """
    if ":" in name:
        return find_object("evaluate.metrics", name, Metric, "heedful.metrics.metric.Metric")
    key = registered_name(name, kind)
    if key is None:
        names = names_of(kind)
        near = get_close_matches(name, names) or names
        raise InputError(f'evaluate.metrics: there is no metric "{name}" of {kind}; did you mean {" or ".join(near)}?')
    metric = METRICS[key]
    if not isinstance(metric, Metric):
        raise InputError(f'evaluate.metrics = "{name}": what a package registers is not a {Metric.__module__}.Metric')
    return metric


def names_of(kind: str) -> list[str]:
    """List the names of the metrics of one kind of outputs."""
    return [name.removeprefix(f"{kind}.") for name in METRICS if name.startswith(f"{kind}.") or "." not in name]


def is_computed(name: str, kind: str) -> bool:
    """True for the name of a metric of one kind of outputs; other scores come with the objective of a task."""
    return ":" in name or registered_name(name, kind) is not None


def registered_name(name: str, kind: str) -> str | None:
    """The name in the registry of a metric of one kind of outputs: that of a package may be without the kind."""
    return next((key for key in (f"{kind}.{name}", name) if key in METRICS), None)


def lower_is_better(name: str) -> bool:
    """True if a lower score of this name is a better one; metrics of one name agree in that, unknown ones are higher.

    Raises:
        InputError: the metric is the user's own, and its module has not been imported.
    """
    if ":" in name:
        return find_metric(name, "").lower_is_better
    if name in LOSSES:
        return True
    key = next((key for key in METRICS if key.rpartition(".")[2].lower() == name.lower()), None)
    return key is not None and METRICS[key].lower_is_better
