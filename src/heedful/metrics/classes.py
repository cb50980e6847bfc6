"""Metrics for outputs that are classes, computed from a confusion matrix, and a report with scores for each class.

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

MAX_COLUMNS = 12  # classes in a confusion matrix; with more, only the most frequent confusions are printed
MAX_CONFUSIONS = 10
MIN_ITEMS = 10  # with fewer, the same class may be predicted for all by chance
MAX_NAME_WIDTH = 24  # characters of a class name in a printed table
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
        return self.correct / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        return self.correct / max(self.expected, 1)

    @property
    def f1(self) -> float:
        # Equal to 2PR / (P + R), but defined where P and R are 0.
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
        int64, shape (C, C): row i, column j counts the examples of class i that are predicted as class j.
    """
    rows, columns = np.asarray(expected, np.int64), np.asarray(predicted, np.int64)
    if rows.shape != columns.shape or rows.ndim != 1 or not rows.size:
        raise InputError(
            f"{columns.size} predictions for {rows.size} labels: give one for each label, and at least one"
        )
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= classes:
        raise InputError(f"a class id is out of range; the ids of {classes} classes are 0 to {classes - 1}")
    # Each pair of classes is one number, so that a single pass counts all cells. (C * C,) -> (C, C)
    return np.bincount(rows * classes + columns, minlength=classes * classes).reshape(classes, classes)


def accuracy(matrix: np.ndarray) -> float:
    """Return the accuracy, the share of examples with the correct class, from a confusion matrix (C, C)."""
    return float(np.trace(matrix) / matrix.sum())


def class_tallies(matrix: np.ndarray) -> list[F1Counts]:
    """Return the counts for precision, recall and F1 of each class against the rest, from a confusion matrix (C, C)."""
    counts = zip(np.diag(matrix), matrix.sum(0), matrix.sum(1), strict=True)
    return [F1Counts(*map(int, three)) for three in counts]


def macro_f1(matrix: np.ndarray) -> float:
    """Return macro F1, the mean of the classes' F1 with equal weights (Opitz & Burst 2019, "Macro F1 and macro F1").

    It is the mean of harmonic means, not the harmonic mean of mean precision and mean recall. A class that neither
    occurs nor is predicted does not count. Without examples it is 0.
    """
    scores = [tally.f1 for tally in class_tallies(matrix) if tally.predicted or tally.expected]
    return float(np.mean(scores)) if scores else 0.0


def micro_f1(matrix: np.ndarray, classes: Sequence[int] | None = None) -> float:
    """Return micro F1, the F1 of the summed counts of some classes (Sokolova & Lapalme 2009, table 3).

    Over all classes (None) it equals accuracy; it differs if a class, such as "no relation", is left out.
    """
    tallies = class_tallies(matrix)
    selection = tallies if classes is None else [tallies[i] for i in classes]
    return F1Counts(*(sum(column) for column in zip(*selection, strict=True))).f1


def matthews(matrix: np.ndarray) -> float:
    """Return the Matthews correlation coefficient of predicted and true classes, from -1 to 1 (Matthews 1975).

    For more than two classes it is R_K (Gorodkin 2004). If all predictions, or all labels, are of one class, it is
    undefined, and 0 is returned.
    """
    total = int(matrix.sum())
    expected = [int(n) for n in matrix.sum(1)]  # Python's integers do not overflow
    predicted = [int(n) for n in matrix.sum(0)]
    # R_K = (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2)): c of s examples are correct, p_k are
    # predicted as class k, and t_k belong to it.
    covariance = int(np.trace(matrix)) * total - sum(i * j for i, j in zip(expected, predicted, strict=True))
    spread = [total**2 - sum(n * n for n in counts) for counts in (expected, predicted)]
    return max(-1.0, min(1.0, covariance / (spread[0] ** 0.5 * spread[1] ** 0.5))) if all(spread) else 0.0


@dataclass(frozen=True)
class Classes(Outputs):
    """Predicted and expected classes, as ids from 0, (N,), with the class names."""

    kind = "classes"
    columns = ("predicted", "expected")

    predicted: np.ndarray
    expected: np.ndarray
    labels: Sequence[str]

    @cached_property
    def matrix(self) -> np.ndarray:
        """Confusion matrix, (C, C)."""
        return confusion_matrix(self.predicted, self.expected, len(self.labels))

    def report(self) -> "ClassReport":
        return report_of_matrix(self.matrix, self.labels)


def second_class_f1(classes: Classes) -> float | None:
    """Return the F1 of the second of two classes; None if there are more or fewer."""
    return class_tallies(classes.matrix)[1].f1 if len(classes.labels) == 2 else None


ACCURACY = Metric(lambda classes: accuracy(classes.matrix))
MACRO_F1 = Metric(lambda classes: macro_f1(classes.matrix))
F1 = Metric(second_class_f1)
MATTHEWS = Metric(lambda classes: matthews(classes.matrix))


@dataclass(frozen=True)
class ClassReport:
    """Scores of each class on a test set, and the confusion matrix.

    Attributes:
        counts: The counts of correct, predicted and expected items of each class; the expected count is its support.
        labels: The names of the rows and columns of the matrix.
        matrix: Int64, shape (C, C): row i, column j counts the items of class i that are predicted as class j.
        unit: What the matrix counts, in the plural.
    """

    counts: Mapping[str, F1Counts]
    labels: tuple[str, ...]
    matrix: np.ndarray
    unit: str = "examples"

    @property
    def absent(self) -> list[str]:
        """Classes without an example in the test set; no score shows how well they are recognised."""
        return [label for label, tally in self.counts.items() if not tally.expected]

    @property
    def averaged(self) -> list[str]:
        """Classes included in macro averages: those that occur in the test set or are predicted."""
        return [label for label, tally in self.counts.items() if tally.expected or tally.predicted]

    @property
    def macro(self) -> dict[str, float]:
        """Means of precision, recall and F1 over the classes in `averaged`; 0 if there are none."""
        tallies = [self.counts[label] for label in self.averaged]
        return {name: float(np.mean([getattr(tally, name) for tally in tallies] or [0.0])) for name in CLASS_METRICS}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "classes": {
                label: {name: getattr(tally, name) for name in CLASS_METRICS}
                | {"support": tally.expected, "predicted": tally.predicted}
                for label, tally in self.counts.items()
            },
            "macro": {**self.macro, "classes": self.averaged},
            "classes_without_examples": self.absent,
            "confusion_matrix": {
                "rows": "expected",
                "columns": "predicted",
                "counts": self.matrix.tolist(),
                "labels": list(self.labels),
                "unit": self.unit,
            },
        }

    def lines(self) -> list[str]:
        """Format the report as lines: a table of the classes, notes on their averages, and the confusion matrix."""
        rows = [["class", *CLASS_METRICS, "support"]]
        for label, tally in self.counts.items():
            scores = (f"{getattr(tally, name):.4f}" for name in CLASS_METRICS)
            rows.append([short(label), *scores, f"{tally.expected:,}"])
        rows.append(["macro average", *(f"{value:.4f}" for value in self.macro.values()), ""])

        averaged, total, notes = self.averaged, len(self.counts), []
        if total == len(self.labels) == 2:
            notes.append(f"f1 is the F1 of {self.labels[1]!r}, the second class")
        if len(averaged) == total:
            notes.append(f"macro averages are over all {total:,} classes")
        else:
            names = f"those with an example or a prediction: {', '.join(averaged)}"
            notes.append(f"macro averages are over {len(averaged):,} of {total:,} classes ({names})")
        if self.absent:
            notes.append(f"classes without an example in this test set: {', '.join(self.absent)}")
        return [*aligned(rows), *notes, "", *self.confusion_lines()]

    def confusion_lines(self) -> list[str]:
        """Format the confusion matrix or, if it is too large, the most frequent confusions."""
        names, items = [short(label) for label in self.labels], counted(int(self.matrix.sum()), self.unit)
        if len(names) <= MAX_COLUMNS:
            rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, self.matrix, strict=True)]
            head = f"confusion matrix of {items} (rows: expected; columns: predicted)"
            return [head, *aligned([["", *names], *rows])]
        # Correct predictions are on the diagonal, and would be the most frequent cells.
        wrong = self.matrix * (1 - np.eye(len(names), dtype=np.int64))
        order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSIONS]
        rows = [
            [names[row], "predicted as", names[column], f"{wrong[row, column]:,}"]
            for row, column in zip(*np.unravel_index(order, wrong.shape), strict=True)
            if wrong[row, column]
        ]
        return [f"most frequent confusions of {items}; --json has the complete matrix", *aligned(rows)]


def report_of_matrix(matrix: np.ndarray, labels: Sequence[str]) -> ClassReport:
    """Return the report of a classifier from its confusion matrix (C, C) and the names of its classes."""
    return ClassReport(dict(zip(labels, class_tallies(matrix), strict=True)), tuple(labels), matrix)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format the rows of a table as lines, with the first column flush left, the others flush right."""
    # `cell_len`, not `len`: a Chinese character takes two columns in a terminal.
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [" " * (width - cell_len(cell)) + cell for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first + " " * (widths[0] - cell_len(first)), *cells]).rstrip())
    return lines


def short(label: str) -> str:
    """Shorten a class name for a table."""
    return label if len(label) <= MAX_NAME_WIDTH else f"{label[: MAX_NAME_WIDTH - 1]}…"


def missing_classes_warning(labels: Iterable[str], where: str) -> str | None:
    """Return a warning that classes have no examples in a set, or None if there are no such classes."""
    missing = list(labels)
    if not missing:
        return None
    return (
        f"{where} has no examples of {', '.join(missing[:MAX_COLUMNS])}{', ...' * (len(missing) > MAX_COLUMNS)}: "
        f"{'they cannot be learned' if where == TRAINING else 'its scores do not show how well they are recognised'}; "
        "add examples of them"
    )


def single_class_warning(report: ClassReport, model: str, where: str) -> str | None:
    """Return a warning if a model predicts only one class for a set with several; None otherwise, or for a tiny set."""
    matrix, items = report.matrix, int(report.matrix.sum())
    predicted = np.flatnonzero(matrix.sum(0))
    if len(predicted) != 1 or items < MIN_ITEMS or np.count_nonzero(matrix.sum(1)) < 2:
        return None
    return (
        f"{model} predicts {report.labels[predicted[0]]!r} for all {items:,} {report.unit} of {where}, so it does not "
        "distinguish the classes. Train longer or with a different optimizer.lr or, if one class is much larger than "
        'the others, with train.class_weights = "balanced"'
    )
