"""Weights of classes in the loss, `train.class_weights`: from names and counts of classes to numbers, once for a run.

C classes.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from jaxtyping import Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.errors import InputError


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
