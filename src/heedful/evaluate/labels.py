"""Metrics of classification from a confusion matrix: accuracy, macro and micro F1, Matthews correlation.

The Matthews correlation lies from -1 to 1, all other metrics from 0 to 1.

Shapes: N examples, C classes.
"""

from collections.abc import Sequence

import numpy as np

from heedful.errors import InputError
from heedful.evaluate.f1 import F1Counts


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
    found = [tally.f1 for tally in class_tallies(matrix) if tally.predicted or tally.expected]
    return float(np.mean(found)) if found else 0.0


def micro_f1(matrix: np.ndarray, classes: Sequence[int] | None = None) -> float:
    """Return micro F1, the F1 of the summed counts of some classes (Sokolova & Lapalme 2009, table 3).

    Over all classes micro F1 equals accuracy; it differs if a class, such as "no relation", is left out.

    Args:
        matrix: Confusion matrix, shape (C, C).
        classes: Ids of the classes that count; None: all.
    """
    tallies = class_tallies(matrix)
    chosen = tallies if classes is None else [tallies[i] for i in classes]
    return F1Counts(*(sum(column) for column in zip(*chosen, strict=True))).f1


def matthews(matrix: np.ndarray) -> float:
    """Return the Matthews correlation coefficient of predicted and right classes, from -1 to 1 (Matthews 1975).

    For more than two classes it is R_K (Gorodkin 2004). If all predictions, or all labels, are one class, the
    coefficient is undefined and given as 0.

    Args:
        matrix: Confusion matrix, shape (C, C).
    """
    total = int(matrix.sum())
    expected = [int(n) for n in matrix.sum(1)]  # Python's integers do not overflow
    predicted = [int(n) for n in matrix.sum(0)]
    covariance = int(np.trace(matrix)) * total - sum(i * j for i, j in zip(expected, predicted, strict=True))
    spread = [total**2 - sum(n * n for n in counts) for counts in (expected, predicted)]
    return max(-1.0, min(1.0, covariance / (spread[0] ** 0.5 * spread[1] ** 0.5))) if all(spread) else 0.0
