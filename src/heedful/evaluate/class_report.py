"""Report of a classifier or tagger class by class: precision, recall, F1, support, and what is confused with what.

Shapes: C classes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from heedful.evaluate.f1 import F1Counts
from heedful.evaluate.labels import class_tallies
from heedful.wording import counted

MOST_COLUMNS = 12  # classes of a confusion matrix that is printed whole
MOST_CONFUSIONS = 10  # that are listed of a larger one
FEWEST = 10  # items that may not all be predicted alike by chance
LONGEST_NAME = 24  # characters of a class in a printed table
TRAINING = "the training set"
MEASURES = ("precision", "recall", "f1")


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
        return {name: float(np.mean([getattr(tally, name) for tally in tallies] or [0.0])) for name in MEASURES}

    @property
    def only_output(self) -> str | None:
        """The class that all items were predicted as; None if there are several."""
        predicted = np.flatnonzero(self.matrix.sum(0))
        return self.labels[predicted[0]] if len(predicted) == 1 and len(self.labels) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        each = {
            label: {name: getattr(tally, name) for name in MEASURES}
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
            [short(label), *(f"{getattr(tally, name):.4f}" for name in MEASURES), f"{tally.expected:,}"]
            for label, tally in self.counts.items()
        ]
        macro = ["macro average", *(f"{value:.4f}" for value in self.macro.values()), ""]
        table = aligned([["class", *MEASURES, "support"], *rows, macro])
        return [*table, *self.notes(), "", *(self.matrix_lines() if len(self.labels) <= MOST_COLUMNS else self.worst())]

    def notes(self) -> list[str]:
        """Say which classes macro averages are over, and which classes have no example."""
        averaged, total = self.averaged, len(self.counts)
        over = f"all {total:,} classes" if len(averaged) == total else f"{len(averaged):,} of {total:,} classes"
        names = "" if len(averaged) == total else f" (those with an example or a prediction: {', '.join(averaged)})"
        two = [f"f1 is that of {self.labels[1]!r}, the second class"] if total == len(self.labels) == 2 else []
        missing = [f"classes without an example in this test set: {', '.join(self.absent)}"] if self.absent else []
        return [*two, f"macro averages are over {over}{names}", *missing]

    def matrix_lines(self) -> list[str]:
        """Format the confusion matrix as lines."""
        names = [short(label) for label in self.labels]
        counts = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, self.matrix, strict=True)]
        head = f"confusion matrix of {counted(int(self.matrix.sum()), self.unit)} (rows: expected; columns: predicted)"
        return [head, *aligned([["", *names], *counts])]

    def worst(self) -> list[str]:
        """List the most frequent confusions of a matrix that is too large to be printed."""
        wrong = self.matrix * (1 - np.eye(len(self.labels), dtype=np.int64))
        order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
        places = [(row, column) for row, column in zip(*np.unravel_index(order, wrong.shape), strict=True)]
        shown = [
            [short(self.labels[row]), "predicted as", short(self.labels[column]), f"{wrong[row, column]:,}"]
            for row, column in places
            if wrong[row, column]
        ]
        head = f"most frequent confusions of {counted(int(self.matrix.sum()), self.unit)}; --json has the whole matrix"
        return [head, *aligned(shown)]


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
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def absence(labels: Iterable[str], where: str) -> str | None:
    """Say that classes have no example in a set; None if there are no such classes."""
    missing = list(labels)
    if not missing:
        return None
    return (
        f"{where} has no example of {', '.join(missing[:MOST_COLUMNS])}{', ...' * (len(missing) > MOST_COLUMNS)}: "
        f"{'these are not learned' if where == TRAINING else 'its scores do not show how well these are recognised'}; "
        "add examples of them"
    )


def sameness(report: ClassReport, model: str, where: str) -> str | None:
    """Say that a model predicts one class for a whole set that has several; None if it does not, or the set is tiny."""
    label, items = report.only_output, int(report.matrix.sum())
    if label is None or items < FEWEST or np.count_nonzero(report.matrix.sum(1)) < 2:
        return None
    return (
        f"{model} predicts {label!r} for all {items:,} {report.unit} of {where}, so it does not distinguish the "
        "classes. Train longer or with another optimizer.lr or, where one class is much larger than the others, with "
        'train.class_weights = "balanced"'
    )
