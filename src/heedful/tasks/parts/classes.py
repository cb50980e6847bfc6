"""Classes of examples: how often each occurs, what to remark on that, and the weights of classes in the loss.

C classes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.labelled import dominance_line
from heedful.data.stores import MediaStore, PairStore
from heedful.errors import InputError
from heedful.metrics.classes import TRAINING, absence

MIN_SORTED = 20  # examples that are not in the order of their classes by chance


def remarks_on_classes(
    examples: PreparedData[PairStore] | PreparedData[MediaStore], data: DataConfig, first: int = 0
) -> list[str]:
    """List remarks on the classes of prepared examples: one that dominates, those without an example, sorted rows.

    Classes are numbered from `first`. With 1, each example has many targets, of which 0 is not a class: then only
    classes without an example are remarked on.
    """

    def count(store: PairStore | MediaStore) -> np.ndarray:
        return np.bincount(store.targets.astype(np.int64), minlength=first + len(data.labels))[first:]  # (C,)

    train = np.sum([count(store) for store in examples.train], axis=0)
    remarks = [] if first else [dominance_line(dict(zip(data.labels, train.tolist(), strict=True)))]
    counts = {TRAINING: train}
    if examples.valid is not None:
        counts["the validation set"] = count(examples.valid)
    for where, numbers in counts.items():
        missing = [label for label, number in zip(data.labels, numbers, strict=True) if not number]
        remarks.append(absence(missing, where))
    if not first:
        remarks += order_remarks(data, examples.train, examples.valid)
    return [remark for remark in remarks if remark]


def order_remarks(
    data: DataConfig, train: Sequence[PairStore | MediaStore], valid: PairStore | MediaStore | None
) -> list[str]:
    """List the tables whose rows are sorted by class and of which `part` takes a piece, so that it lacks classes."""
    stores = [*zip(data.train, train, strict=True), *([(data.valid, valid)] if data.valid and valid else [])]
    pieces: dict[str, list[tuple[float, np.ndarray]]] = {}
    for corpus, store in stores:
        if corpus.part != WHOLE and not Path(data.root, corpus.source).is_dir():  # of a folder, each class has its part
            pieces.setdefault(corpus.source, []).append((corpus.part[0], store.targets.astype(np.int64)))
    remarks = []
    for source, parts in pieces.items():
        classes = np.concatenate([targets for _, targets in sorted(parts, key=lambda part: part[0])])
        changes = np.count_nonzero(np.diff(classes))
        if len(classes) >= MIN_SORTED and 0 < changes < len(np.unique(classes)):
            remarks.append(
                f"{source}: its rows are sorted by class, and part takes a piece of them, so that a piece lacks "
                "classes; shuffle the rows"
            )
    return remarks


def with_class_weights(recipe: Recipe, labels_in: Callable[[CorpusConfig], Iterable[str]]) -> Recipe:
    """Return a recipe whose `train.class_weights`, if it has any, is a table with a number for each of its classes.

    "balanced" is n / (k n_c) for a class with n_c of n training examples of k classes (King & Zeng 2001), so that each
    class counts alike and the weights of all examples have the mean 1. A class without an example gets 1.
    `labels_in` gives the class of each training example of a corpus, whose `weight` counts.
    """
    weights, labels = recipe.train.class_weights, recipe.data.labels
    if weights is None:
        return recipe
    if weights == "balanced":
        counts: dict[str, float] = {}
        for corpus in recipe.data.train:
            for label, count in Counter(labels_in(corpus)).items():
                counts[label] = counts.get(label, 0.0) + corpus.weight * count
        weights = {label: sum(counts.values()) / (len(counts) * count) for label, count in counts.items()}
    elif strangers := [label for label in weights if label not in labels]:
        raise InputError(
            f"train.class_weights names {', '.join(map(repr, strangers))}, and the classes are {', '.join(labels)}; "
            "correct the name"
        )
    weights = {label: weights.get(label, 1.0) for label in labels}
    return replace(recipe, train=replace(recipe.train, class_weights=weights))


def class_weights(recipe: Recipe, device: torch.device) -> Float32[Tensor, " C"] | None:
    """Return the weights of the classes of a recipe in their order, on a device; None without weights."""
    weights = recipe.train.class_weights
    if not isinstance(weights, dict):
        return None
    return torch.tensor([weights[label] for label in recipe.data.labels], device=device)
