"""Classes of examples: how often each occurs, what to remark on that, and the weights of classes in the loss.

C classes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.labelled import dominance_line
from heedful.data.stores.media_store import MediaStore
from heedful.data.stores.pair_store import PairStore
from heedful.errors import InputError
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


def remarks_on_classes(
    examples: PreparedData[PairStore] | PreparedData[MediaStore], labels: Sequence[str], first: int = 0
) -> list[str]:
    """List remarks on the classes of prepared examples, which are numbered from `first`; 1 if 0 stands for no class."""
    valid = examples.valid
    train = np.sum([class_counts(store, len(labels), first) for store in examples.train], axis=0)
    counts = None if valid is None else class_counts(valid, len(labels), first)
    return balance_remarks(train, counts, labels, dominant=first == 0)


def with_class_weights(recipe: Recipe, labels_in: Callable[[CorpusConfig], Iterable[str]]) -> Recipe:
    """Return a recipe whose `train.class_weights`, if it has any, is a table with a number for each of its classes.

    "balanced" is n / (k n_c) for a class with n_c of n training examples of k classes (King & Zeng 2001), so that each
    class counts alike and the weights of all examples have the mean 1. A class without an example gets 1.

    Args:
        recipe: The recipe, with the names of its classes.
        labels_in: Gives the class of each training example of a corpus, whose `weight` counts.

    Raises:
        InputError: A weight is for what is not a class.
    """
    asked, labels = recipe.train.class_weights, recipe.data.labels
    if asked is None:
        return recipe
    if asked == "balanced":
        counts: dict[str, float] = {}
        for corpus in recipe.data.train:
            for label, count in Counter(labels_in(corpus)).items():
                counts[label] = counts.get(label, 0.0) + corpus.weight * count
        asked = {label: sum(counts.values()) / (len(counts) * count) for label, count in counts.items()}
    elif strangers := [label for label in asked if label not in labels]:
        raise InputError(
            f"train.class_weights names {', '.join(map(repr, strangers))}, and the classes are {', '.join(labels)}; "
            "correct the name"
        )
    weights = {label: asked.get(label, 1.0) for label in labels}
    return replace(recipe, train=replace(recipe.train, class_weights=weights))


def class_weights(recipe: Recipe, device: torch.device) -> Float32[Tensor, " C"] | None:
    """Return the weights of the classes of a recipe in their order, on a device; None without weights."""
    weights = recipe.train.class_weights
    if not isinstance(weights, dict):
        return None
    return torch.tensor([weights[label] for label in recipe.data.labels], device=device)
