"""Builds the model of a model folder, once the files show that they hold as much as the recipe asks for.

A recipe may come from a stranger. So its model is first built without memory, on torch's meta device; then the size of
the weights' file, its bytes and the shapes in its header are compared with that model; and then a real one is built.
"""

from collections.abc import Callable

import torch

from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.tensors import read_shapes
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.models import Model
from heedful.models.model import misfits
from heedful.storage.manifest import Manifest
from heedful.tasks import find_task
from heedful.tasks.task import check
from heedful.text.tokenizer_pair import TokenizerPair

LARGEST_NUMBER = 8  # bytes
LARGEST_HEADER = 10**8  # bytes that the safetensors library reads as a header


def build_fitting(manifest: Manifest, recipe: Recipe, tokenizers: TokenizerPair) -> Model:
    """Build the model of a folder with random weights, in which those of the folder have a place.

    Raises:
        InputError: The task cannot have such a model, or the weights do not fit the recipe.
        DamagedError: The weights are not what was saved.
    """
    task = find_task(recipe.task)
    check(task, recipe)
    needed = _shapes(lambda: task.build(recipe, tokenizers), f"{manifest.folder}: no model has the sizes of its recipe")
    largest = LARGEST_NUMBER * sum(shape.numel() for shape in needed.values()) + LARGEST_HEADER
    if WEIGHTS in manifest.files and manifest.files[WEIGHTS].bytes > largest:
        raise InputError(
            f"{manifest.folder}: {WEIGHTS} has {manifest.files[WEIGHTS].bytes:,} bytes, more than the model of the "
            "recipe can have: copy the model again from where it is whole"
        )
    if problems := misfits(needed, read_shapes(manifest.verified(WEIGHTS))):
        raise InputError(f"{manifest.folder}: the weights do not fit the recipe: {'; '.join(problems)}")
    return task.build(recipe, tokenizers)


def _shapes(build: Callable[[], Model], refusal: str) -> dict[str, torch.Size]:
    """The shapes of the parameters of the model that `build` makes, without memory for them."""
    try:
        with torch.device("meta"):
            return {name: parameter.shape for name, parameter in build().named_parameters()}
    except (RuntimeError, OverflowError, ZeroDivisionError) as error:  # a product that is no number of torch's
        raise InputError(f"{refusal} ({error}): copy the model again from where it is whole") from error
