"""Remarks on the classes of prepared data: one that dominates, and those without an example.

C classes.
"""

from collections.abc import Sequence

import numpy as np

from heedful.data.readers.labelled import dominance_line
from heedful.data.stores.media_store import MediaStore
from heedful.data.stores.pair_store import PairStore
from heedful.evaluate.class_report import TRAINING, absence


def class_counts(store: PairStore | MediaStore, classes: int, first: int = 0) -> np.ndarray:
    """Count the targets of each class in a store, (C,); classes are numbered from `first`."""
    return np.bincount(store.targets.astype(np.int64), minlength=first + classes)[first:]


def balance_remarks(
    train: np.ndarray, valid: np.ndarray | None, labels: Sequence[str], *, dominant: bool = True
) -> list[str]:
    """List remarks on the numbers of examples of each class.

    Args:
        train: The counts in the training set, (C,).
        valid: The counts in the validation set, (C,); None: there is none.
        labels: The names of the classes.
        dominant: True to remark on a class that most examples belong to.
    """
    found = [dominance_line(dict(zip(labels, train.tolist(), strict=True)))] if dominant else []
    for counts, where in ((train, TRAINING), (valid, "the validation set")):
        if counts is not None:
            found.append(absence([label for label, count in zip(labels, counts, strict=True) if not count], where))
    return [line for line in found if line]
