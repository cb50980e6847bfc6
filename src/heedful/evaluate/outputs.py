"""Outputs of a model on a test set, from which metrics are computed and resampled."""

from abc import ABC
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from heedful.evaluate.class_report import ClassReport
from heedful.evaluate.metrics import Metric, mean
from heedful.evaluate.significance import Outcomes


@dataclass(frozen=True)
class Outputs(ABC):
    """Outputs of a model on the N examples of a test set, with what is expected of each; a subclass for each kind.

    Each field with an item for each example, an array or a list, is one of `columns`.
    """

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def select(self, chosen: np.ndarray) -> Any:
        """Return the outputs of the examples with given numbers, int64, from 0, which may repeat."""
        parts = {name: getattr(self, name) for name in self.columns}
        taken = {
            name: part[chosen] if isinstance(part, np.ndarray) else [part[number] for number in chosen.tolist()]
            for name, part in parts.items()
        }
        return replace(self, **taken)

    def groups(self) -> np.ndarray | None:
        """The number, from 0, of the group of each example: a group is resampled as a whole. None: each by itself."""
        return None

    def report(self) -> ClassReport | None:
        """Make the report class by class; None where the outputs are not classes."""
        return None


def outcomes_of(outputs: Outputs, metrics: Mapping[str, Metric]) -> Outcomes:
    """Compute what the scores of a whole test set, and of any resample of it, follow from.

    Args:
        outputs: The outputs on the test set.
        metrics: The metrics, by the names of their scores.
    """
    rows = {name: np.asarray(metric.compute(outputs)) for name, metric in metrics.items() if metric.total}

    def measure(names: Collection[str], chosen: np.ndarray) -> dict[str, float]:
        scores: dict[str, float] = {}
        part = outputs.select(chosen) if len(names) > sum(name in rows for name in names) else outputs
        for name in names:
            metric = metrics[name]
            score = metric.total(rows[name][chosen]) if metric.total else metric.compute(part)
            if score is not None:
                scores[name] = score
        return scores

    groups = outputs.groups()
    members = None  # of each group
    if groups is not None:
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    repeatable = [name for name, metric in metrics.items() if metric.resampled]

    def resample(chosen: np.ndarray) -> dict[str, float]:
        examples = chosen if members is None else np.concatenate([members[group] for group in chosen.tolist()])
        return measure(repeatable, examples)

    return Outcomes(
        count=len(outputs) if members is None else len(members),
        measure=resample,
        classes=outputs.report(),
        whole=measure(metrics, np.arange(len(outputs))),
        each={name: values.tolist() for name, values in rows.items() if metrics[name].total is mean},
    )
