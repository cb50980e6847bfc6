"""Outputs that are classes: their metrics, from a confusion matrix, and the report class by class.

The Matthews correlation is from -1 to 1, all other metrics from 0 to 1.

Shapes: N examples, C classes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from rich.cells import cell_len

from heedful.errors import InputError
from heedful.metrics.metric import Metric, Outputs
from heedful.wording import counted

MAX_COLUMNS = 12  # classes of a confusion matrix that is printed whole
MAX_CONFUSIONS = 10  # listed of a larger one
MIN_ITEMS = 10  # fewer may all be predicted alike by chance
MAX_NAME_WIDTH = 24  # characters of a class in a printed table
TRAINING = "the training set"
CLASS_METRICS = ("precision", "recall", "f1")


class F1Counts(NamedTuple):
    """Counts of correct, predicted and expected items, with their precision, recall and F1.

    Precision P = correct / predicted, recall R = correct / expected, F1 = 2PR / (P + R) (van Rijsbergen 1979, chapter
    7). Each is from 0 to 1, and 0 if its denominator is 0.
    """

    correct: int
    predicted: int
    expected: int

    @property
    def precision(self) -> float:
        """Precision: the share of predicted items that are correct."""
        return self.correct / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        """Recall: the share of expected items that were predicted."""
        return self.correct / max(self.expected, 1)

    @property
    def f1(self) -> float:
        """F1: the harmonic mean of precision and recall."""
        return 2 * self.correct / max(self.predicted + self.expected, 1)


def confusion_matrix(
    predicted: np.ndarray | Sequence[int], expected: np.ndarray | Sequence[int], classes: int
) -> np.ndarray:
    """Return the confusion matrix: the counts of examples by expected class (rows) and predicted class (columns).

    Args:
        predicted: Predicted class ids from 0, integers, shape (N,).
        expected: Correct class ids, shape (N,).
        classes: The number C of classes, including classes that do not occur.

    Returns:
        int64, shape (C, C): row i, column j counts the examples of class i that were predicted as class j.

    Raises:
        InputError: There are no examples, the lengths differ, or an id is not below `classes`.
    """
    rows, columns = np.asarray(expected, np.int64), np.asarray(predicted, np.int64)
    if rows.shape != columns.shape or rows.ndim != 1 or not rows.size:
        raise InputError(f"{columns.size} predictions for {rows.size} labels: there must be one for each, and some")
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= classes:
        raise InputError(f"a class id is not from 0 to {classes - 1}, though there are {classes} classes")
    return np.bincount(rows * classes + columns, minlength=classes * classes).reshape(classes, classes)


def accuracy(matrix: np.ndarray) -> float:
    """Return the accuracy, the share of examples whose class is right, from a confusion matrix (C, C)."""
    return float(np.trace(matrix) / matrix.sum())


def class_tallies(matrix: np.ndarray) -> list[F1Counts]:
    """Return the counts for precision, recall and F1 of each class against the rest, from a confusion matrix (C, C)."""
    counts = zip(np.diag(matrix), matrix.sum(0), matrix.sum(1), strict=True)
    return [F1Counts(*map(int, three)) for three in counts]


def macro_f1(matrix: np.ndarray) -> float:
    """Return macro F1, the mean of the classes' F1 with equal weights (Opitz & Burst 2019, "Macro F1 and macro F1").

    Macro F1 is the mean of harmonic means, and not the harmonic mean of mean precision and mean recall. A class that
    neither occurs nor is predicted does not count. Without an example it is 0.
    """
    scores = [tally.f1 for tally in class_tallies(matrix) if tally.predicted or tally.expected]
    return float(np.mean(scores)) if scores else 0.0


def micro_f1(matrix: np.ndarray, classes: Sequence[int] | None = None) -> float:
    """Return micro F1, the F1 of the summed counts of some classes (Sokolova & Lapalme 2009, table 3).

    Over all classes (None) micro F1 equals accuracy; it differs if a class, such as "no relation", is left out.
    """
    tallies = class_tallies(matrix)
    selection = tallies if classes is None else [tallies[i] for i in classes]
    return F1Counts(*(sum(column) for column in zip(*selection, strict=True))).f1


def matthews(matrix: np.ndarray) -> float:
    """Return the Matthews correlation coefficient of predicted and right classes, from -1 to 1 (Matthews 1975).

    For more than two classes it is R_K (Gorodkin 2004). If all predictions, or all labels, are one class, the
    coefficient is undefined and given as 0.
    """
    total = int(matrix.sum())
    expected = [int(n) for n in matrix.sum(1)]  # Python's integers do not overflow
    predicted = [int(n) for n in matrix.sum(0)]
    covariance = int(np.trace(matrix)) * total - sum(i * j for i, j in zip(expected, predicted, strict=True))
    spread = [total**2 - sum(n * n for n in counts) for counts in (expected, predicted)]
    return max(-1.0, min(1.0, covariance / (spread[0] ** 0.5 * spread[1] ** 0.5))) if all(spread) else 0.0


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

    def report(self) -> "ClassReport":
        return report_of_matrix(self.matrix, self.labels)


def second_class_f1(classes: Classes) -> float | None:
    """Compute the F1 of the second of two classes; None if there are more or fewer."""
    return class_tallies(classes.matrix)[1].f1 if len(classes.labels) == 2 else None


ACCURACY = Metric(lambda classes: accuracy(classes.matrix))
MACRO_F1 = Metric(lambda classes: macro_f1(classes.matrix))
F1 = Metric(second_class_f1)
MATTHEWS = Metric(lambda classes: matthews(classes.matrix))


@dataclass(frozen=True)
class ClassReport:
    """Scores of each class on a test set, and the confusion matrix.

    Attributes:
        counts: The counts of correct, predicted and expected items of each class; the expected ones are its support.
        labels: The names of the rows and columns of the matrix.
        matrix: int64, shape (C, C): row i, column j counts the items of class i that were predicted as class j.
        unit: What the matrix counts, in the plural.
    """

    counts: Mapping[str, F1Counts]
    labels: tuple[str, ...]
    matrix: np.ndarray
    unit: str = "examples"

    @property
    def absent(self) -> list[str]:
        """Classes without an example in the test set: no score of the set shows how well they are recognised."""
        return [label for label, tally in self.counts.items() if not tally.expected]

    @property
    def averaged(self) -> list[str]:
        """Classes that macro averages are over: those that occur in the test set or are predicted."""
        return [label for label, tally in self.counts.items() if tally.expected or tally.predicted]

    @property
    def macro(self) -> dict[str, float]:
        """Means of precision, recall and F1 over the classes in `averaged`, each counting alike; 0 of no class."""
        tallies = [self.counts[label] for label in self.averaged]
        return {name: float(np.mean([getattr(tally, name) for tally in tallies] or [0.0])) for name in CLASS_METRICS}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        each = {
            label: {name: getattr(tally, name) for name in CLASS_METRICS}
            | {"support": tally.expected, "predicted": tally.predicted}
            for label, tally in self.counts.items()
        }
        matrix = {"counts": self.matrix.tolist(), "labels": list(self.labels), "unit": self.unit}
        return {
            "classes": each,
            "macro": {**self.macro, "classes": self.averaged},
            "classes_without_examples": self.absent,
            "confusion_matrix": {"rows": "expected", "columns": "predicted", **matrix},
        }

    def lines(self) -> list[str]:
        """Format the report as lines: a table of the classes, notes on their averages, and the confusion matrix."""
        rows = [
            [short(label), *(f"{getattr(tally, name):.4f}" for name in CLASS_METRICS), f"{tally.expected:,}"]
            for label, tally in self.counts.items()
        ]
        macro = ["macro average", *(f"{value:.4f}" for value in self.macro.values()), ""]
        table = aligned([["class", *CLASS_METRICS, "support"], *rows, macro])
        confusions = self.matrix_lines() if len(self.labels) <= MAX_COLUMNS else self.most_frequent_confusions()
        return [*table, *self.notes(), "", *confusions]

    def notes(self) -> list[str]:
        """Say which classes macro averages are over, and which classes have no example."""
        averaged, total = self.averaged, len(self.counts)
        over = f"all {total:,} classes" if len(averaged) == total else f"{len(averaged):,} of {total:,} classes"
        names = "" if len(averaged) == total else f" (those with an example or a prediction: {', '.join(averaged)})"
        two = [f"f1 is that of {self.labels[1]!r}, the second class"] if total == len(self.labels) == 2 else []
        missing = [f"classes without an example in this test set: {', '.join(self.absent)}"] if self.absent else []
        return [*two, f"macro averages are over {over}{names}", *missing]

    def matrix_lines(self) -> list[str]:
        names = [short(label) for label in self.labels]
        counts = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, self.matrix, strict=True)]
        head = f"confusion matrix of {counted(int(self.matrix.sum()), self.unit)} (rows: expected; columns: predicted)"
        return [head, *aligned([["", *names], *counts])]

    def most_frequent_confusions(self) -> list[str]:
        """List the most frequent confusions of a matrix that is too large to be printed."""
        wrong = self.matrix * (1 - np.eye(len(self.labels), dtype=np.int64))
        order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSIONS]
        rows = [
            [short(self.labels[row]), "predicted as", short(self.labels[column]), f"{wrong[row, column]:,}"]
            for row, column in zip(*np.unravel_index(order, wrong.shape), strict=True)
            if wrong[row, column]
        ]
        head = f"most frequent confusions of {counted(int(self.matrix.sum()), self.unit)}; --json has the whole matrix"
        return [head, *aligned(rows)]


def report_of_matrix(matrix: np.ndarray, labels: Sequence[str]) -> ClassReport:
    """Make the report of a classifier from its confusion matrix (C, C) and the names of its classes."""
    return ClassReport(dict(zip(labels, class_tallies(matrix), strict=True)), tuple(labels), matrix)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format the rows of a table as lines: the first column to the left, the others to the right."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [" " * (width - cell_len(cell)) + cell for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first + " " * (widths[0] - cell_len(first)), *cells]).rstrip())
    return lines


def short(label: str) -> str:
    """Shorten the name of a class for a table."""
    return label if len(label) <= MAX_NAME_WIDTH else f"{label[: MAX_NAME_WIDTH - 1]}…"


def absence(labels: Iterable[str], where: str) -> str | None:
    """Say that classes have no example in a set; None if there are no such classes."""
    missing = list(labels)
    if not missing:
        return None
    return (
        f"{where} has no example of {', '.join(missing[:MAX_COLUMNS])}{', ...' * (len(missing) > MAX_COLUMNS)}: "
        f"{'these are not learned' if where == TRAINING else 'its scores do not show how well these are recognised'}; "
        "add examples of them"
    )


def sameness(report: ClassReport, model: str, where: str) -> str | None:
    """Say that a model predicts one class for a whole set that has several; None if it does not, or the set is tiny."""
    matrix, items = report.matrix, int(report.matrix.sum())
    predicted = np.flatnonzero(matrix.sum(0))
    if len(predicted) != 1 or items < MIN_ITEMS or np.count_nonzero(matrix.sum(1)) < 2:
        return None
    return (
        f"{model} predicts {report.labels[predicted[0]]!r} for all {items:,} {report.unit} of {where}, so it does not "
        "distinguish the classes. Train longer or with another optimizer.lr or, where one class is much larger than "
        'the others, with train.class_weights = "balanced"'
    )
