"""Builds the model of a model folder, once the files show that they hold as much as the recipe asks for.

A recipe may come from a stranger. So its number of layers is compared with the header of the weights' file; then its
model is built without memory, on torch's meta device; the size of the file, its bytes and the shapes in its header are
compared with that model; and only then a real one is built.
"""

from collections.abc import Callable

import torch

from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.tensors import read_shapes
from heedful.config.architecture_options import OPTIONS
from heedful.config.families import FAMILIES
from heedful.config.schema import Recipe
from heedful.config.user_code import errors_of_own_code
from heedful.errors import InputError
from heedful.models import Model
from heedful.models.model import misfits
from heedful.nn.meta_device import meta_device
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
    found = read_shapes(manifest.sized(WEIGHTS))
    if _layers(recipe) > len(found):
        raise InputError(
            f"{manifest.folder}: the weights do not fit the recipe, which has {_layers(recipe)} layers: more than "
            f"there are tensors in {WEIGHTS}"
        )
    with errors_of_own_code(recipe, f"the model of {manifest.folder} cannot be built"):
        needed = _shapes(
            lambda: task.build(recipe, tokenizers), f"{manifest.folder}: no model has the sizes of its recipe"
        )
    largest = LARGEST_NUMBER * sum(shape.numel() for shape in needed.values()) + LARGEST_HEADER
    if manifest.files[WEIGHTS].bytes > largest:
        raise InputError(
            f"{manifest.folder}: {WEIGHTS} has {manifest.files[WEIGHTS].bytes:,} bytes, more than the model of the "
            "recipe can have: copy the model again from where it is whole"
        )
    manifest.verified(WEIGHTS)
    if problems := misfits(needed, found):
        raise InputError(f"{manifest.folder}: the weights do not fit the recipe: {'; '.join(problems)}")
    return task.build(recipe, tokenizers)


def _layers(recipe: Recipe) -> int:
    """The layers that the recipe of a built-in architecture asks for; each has a tensor of its own at least."""
    if recipe.model.architecture not in OPTIONS:
        return 0
    keys = (*FAMILIES[recipe.model.family].layers, "layers")
    return sum(getattr(recipe.model, key, 0) for key in keys)


def _shapes(build: Callable[[], Model], refusal: str) -> dict[str, torch.Size]:
    """The shapes of the parameters of the model that `build` makes, without memory for them."""
    try:
        with meta_device():
            return {name: parameter.shape for name, parameter in build().named_parameters()}
    except (RuntimeError, OverflowError, ZeroDivisionError) as error:  # a product that is no number of torch's
        raise InputError(f"{refusal} ({error}): copy the model again from where it is whole") from error
