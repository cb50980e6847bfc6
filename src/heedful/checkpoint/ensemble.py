"""Load several models as an ensemble, which writes text as a single model does."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from heedful.architectures.ensemble import ensemble
from heedful.architectures.heads import CausalModel
from heedful.architectures.model import SourceToTarget
from heedful.checkpoint.load import LoadedModel, load_model
from heedful.errors import InputError
from heedful.tasks.specs import kind_of_model
from heedful.text.tokenizer_pair import TokenizerPair

INPUT_SETTINGS = {  # those that turn an image or audio file into the input of a model
    "image": ("size", "resize", "resample", "channels", "patch", "mean", "std"),
    "audio": ("rate", "channel", "features", "window", "hop", "mels", "pad_seconds"),
}


def load_ensemble(paths: Sequence[str | Path], device: str | torch.device = "cpu") -> LoadedModel:
    """Load models that write text with the same tokenizers; a single model is loaded as it is.

    The ensemble has the recipe of the first model, and so its settings of the search.

    Raises:
        InputError: The models have different tasks or tokenizers, or do not write text.
    """
    if not paths:
        raise InputError("an ensemble needs at least one model; give one or more")
    models = [load_model(path, device) for path in paths]
    first, *others = models
    for other in others:
        if not isinstance(first.model, SourceToTarget | CausalModel):
            raise InputError(
                f"{first.name} is {kind_of_model(first.recipe.task)}, but an ensemble needs models that write text; "
                "give a single model"
            )
        if other.recipe.task != first.recipe.task:
            raise InputError(
                f"{other.name} is {kind_of_model(other.recipe.task)}, but {first.name} is "
                f"{kind_of_model(first.recipe.task)}; the models of an ensemble must have the same task"
            )
        reject_other_input(first, other)
        if vocabulary_files(other.tokenizers) != vocabulary_files(first.tokenizers):
            raise InputError(
                f"{other.name} and {first.name} have different tokenizers, so their probabilities cannot be averaged; "
                "train the models of an ensemble on the same data with the same [tokenizer]"
            )
    return replace(first, model=ensemble([each.model for each in models]).eval()) if others else first


def reject_other_input(first: LoadedModel, other: LoadedModel) -> None:
    """Reject a model that turns an image or audio file into another input than the first model of an ensemble does."""
    for table, keys in INPUT_SETTINGS.items():
        ours, theirs = getattr(first.recipe, table), getattr(other.recipe, table)
        for key in keys:
            if getattr(theirs, key) != getattr(ours, key):
                raise InputError(
                    f"{other.name} has {table}.{key} = {getattr(theirs, key)}, but {first.name} has "
                    f"{getattr(ours, key)}; the models of an ensemble must read the same input"
                )


def vocabulary_files(tokenizers: TokenizerPair) -> dict[str, bytes]:
    """Return the bytes of the files of two tokenizers, without the shortlist, which may differ."""
    return replace(tokenizers, shortlist=None).files()
