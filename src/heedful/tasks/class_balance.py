"""Remarks on the classes of prepared data: one that dominates, those without an example, and an order by class.

C classes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedful.config.schema import DataConfig
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.labelled import dominance_line
from heedful.data.stores.media_store import MediaStore
from heedful.data.stores.pair_store import PairStore
from heedful.evaluate.class_report import TRAINING, absence

ENOUGH = 20  # examples that are not in the order of their classes by chance


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


def order_remarks(
    data: DataConfig, train: Sequence[PairStore | MediaStore], valid: PairStore | MediaStore | None
) -> list[str]:
    """List the tables whose rows are sorted by class and of which `part` takes a piece, so that it lacks classes.

    Args:
        data: The settings of the data.
        train: The training sets, one for each of `data.train`, with the class of each example in the order of the rows.
        valid: The validation set; None: there is none.
    """
    stores = [*zip(data.train, train, strict=True), *([(data.valid, valid)] if data.valid and valid else [])]
    pieces: dict[str, list[tuple[float, np.ndarray]]] = {}
    for corpus, store in stores:
        if (
            corpus.part != WHOLE and not Path(data.root, corpus.source).is_dir()
        ):  # of a folder, part is taken of each class
            pieces.setdefault(corpus.source, []).append((corpus.part[0], store.targets.astype(np.int64)))
    remarks = []
    for source, parts in pieces.items():
        classes = np.concatenate([targets for _, targets in sorted(parts, key=lambda part: part[0])])
        changes = np.count_nonzero(np.diff(classes))
        if len(classes) >= ENOUGH and 0 < changes < len(np.unique(classes)):
            remarks.append(
                f"{source}: its rows are sorted by class, and part takes a piece of them, so that a piece lacks "
                "classes; shuffle the rows"
            )
    return remarks
