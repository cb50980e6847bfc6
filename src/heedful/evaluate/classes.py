"""Outputs that are classes, and their metrics.

N examples, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedful.evaluate.class_report import ClassReport, report_of_matrix
from heedful.evaluate.labels import accuracy, class_tallies, confusion_matrix, macro_f1, matthews
from heedful.evaluate.metrics import Metric
from heedful.evaluate.outputs import Outputs


@dataclass(frozen=True)
class Classes(Outputs):
    """Predicted and expected classes, as ids from 0, (N,); and the names of the classes."""

    kind = "classes"
    columns = ("predicted", "expected")

    predicted: np.ndarray
    expected: np.ndarray
    labels: Sequence[str]

    @cached_property
    def matrix(self) -> np.ndarray:
        """The confusion matrix, (C, C)."""
        return confusion_matrix(self.predicted, self.expected, len(self.labels))

    def report(self) -> ClassReport:
        """Make the report class by class."""
        return report_of_matrix(self.matrix, self.labels)


def second_class_f1(classes: Classes) -> float | None:
    """Compute the F1 of the second of two classes; None if there are more or fewer."""
    return class_tallies(classes.matrix)[1].f1 if len(classes.labels) == 2 else None


ACCURACY = Metric(lambda classes: accuracy(classes.matrix))
MACRO_F1 = Metric(lambda classes: macro_f1(classes.matrix))
F1 = Metric(second_class_f1)
MATTHEWS = Metric(lambda classes: matthews(classes.matrix))
