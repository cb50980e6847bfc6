"""How well classes are told apart. All figures follow from the confusion matrix, and lie from 0 to 1 but Matthews'.

Shapes: N examples, C classes.
"""

from collections.abc import Sequence

import numpy as np

from heedful.errors import InputError
from heedful.evaluate.f1 import F1Counts


def confusion_matrix(
    predicted: np.ndarray | Sequence[int], expected: np.ndarray | Sequence[int], classes: int
) -> np.ndarray:
    """Count the examples of each class that were taken for each class.

    Args:
        predicted: Class ids from 0, integers, shape (N,).
        expected: The right ones, shape (N,).
        classes: Their number C, those that do not occur included.

    Returns:
        int64, shape (C, C): row i, column j counts the examples of class i that were taken for class j.

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
    """Return the share of examples whose class is right, of a confusion matrix (C, C)."""
    return float(np.trace(matrix) / matrix.sum())


def class_tallies(matrix: np.ndarray) -> list[F1Counts]:
    """Return precision, recall and F1 of each class against all others, of a confusion matrix (C, C)."""
    counts = zip(np.diag(matrix), matrix.sum(0), matrix.sum(1), strict=True)
    return [F1Counts(*map(int, three)) for three in counts]


def macro_f1(matrix: np.ndarray) -> float:
    """Return the mean of the classes' F1, every class counting alike (Opitz & Burst 2019, "Macro F1 and macro F1").

    It is the mean of harmonic means, and not the harmonic mean of mean precision and mean recall. A class that
    neither occurs nor is predicted has F1 0.
    """
    return float(np.mean([tally.f1 for tally in class_tallies(matrix)]))


def micro_f1(matrix: np.ndarray, classes: Sequence[int] | None = None) -> float:
    """Return the F1 of all decisions of some classes together (Sokolova & Lapalme 2009, table 3).

    Over all classes it is the accuracy; it differs where one, such as "no relation", is left out.

    Args:
        matrix: Confusion matrix, shape (C, C).
        classes: Which count; None: all.
    """
    tallies = class_tallies(matrix)
    chosen = tallies if classes is None else [tallies[i] for i in classes]
    return F1Counts(*(sum(column) for column in zip(*chosen, strict=True))).f1


def matthews(matrix: np.ndarray) -> float:
    """Return the correlation of predicted and right classes, from -1 to 1 (Matthews 1975).

    For more than two classes it is R_K (Gorodkin 2004). Where all predictions, or all labels, are one
    class it is undefined and given as 0.

    Args:
        matrix: Confusion matrix, shape (C, C).
    """
    total = int(matrix.sum())
    expected = [int(n) for n in matrix.sum(1)]  # Python's integers do not overflow
    predicted = [int(n) for n in matrix.sum(0)]
    covariance = int(np.trace(matrix)) * total - sum(i * j for i, j in zip(expected, predicted, strict=True))
    spread = [total**2 - sum(n * n for n in counts) for counts in (expected, predicted)]
    return covariance / (spread[0] ** 0.5 * spread[1] ** 0.5) if all(spread) else 0.0
