"""Read and verify the weights of model folders and checkpoints, and build the model that they describe."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.architectures import Model
from heedful.architectures.model import dtype_problem, misfits
from heedful.checkpoint.safetensors_format import files_of, read_whole, whole_shapes
from heedful.config.families import FAMILIES
from heedful.config.schema import Recipe
from heedful.config.user_code import custom_code_errors
from heedful.config.validate import OPTIONS
from heedful.errors import InputError
from heedful.nn.meta_device import meta_device
from heedful.storage.complete_folder import Manifest, read_manifest
from heedful.tasks import find_task
from heedful.tasks.specs import check_task
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.nn.lora import Adapter

WEIGHTS = "model.safetensors"
MAX_NUMBER_BYTES = 8  # size of a weight in float64, the largest type
MAX_HEADER_BYTES = 10**8  # the largest header that the safetensors library reads


def read_weights(manifest: Manifest) -> dict[str, Tensor]:
    """Read and verify the weights of a model folder, on the CPU and in the stored type; integers become float32."""
    weights = read_whole(manifest, WEIGHTS)
    if any(value.dtype in (torch.int8, torch.uint8) for value in weights.values()):
        from heedful.checkpoint.quantisation import dequantised

        weights = dequantised(weights, manifest.folder)
    if problem := dtype_problem(weights):
        raise InputError(f"{manifest.folder}: {problem}: restore the model from an intact copy")
    return weights


def read_merged(manifest: Manifest, recipe: Recipe) -> tuple[dict[str, Tensor], "Adapter | None"]:
    """Read the weights of a model folder; return them with any LoRA updates merged, and the updates separately."""
    weights = read_weights(manifest)
    if recipe.train.lora is None:
        return weights, None
    from heedful.nn.lora import split_adapter

    weights, adapter = split_adapter(weights, recipe.train.lora)
    return adapter.merged(weights), adapter


def average(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Average the weights of several models or checkpoints, summed in float64 and returned as float32."""
    if not folders:
        raise InputError("there is nothing to average: give at least one checkpoint")
    first, *others = folders
    total = {name: value.double() for name, value in read_weights(read_manifest(first)).items()}
    for folder in others:
        weights = read_weights(read_manifest(folder))
        if weights.keys() != total.keys() or any(value.shape != total[name].shape for name, value in weights.items()):
            raise InputError(f"{folder} and {first} contain different models: average checkpoints of one model")
        for name, value in weights.items():
            total[name] += value
    return {name: (value / len(folders)).float() for name, value in total.items()}


def build_checked(manifest: Manifest, recipe: Recipe, tokenizers: TokenizerPair) -> Model:
    """Build the folder's model, with random weights, after checking that the weights in the folder fit it.

    The model has no LoRA layers, since `read_merged` merges the updates into the weights.
    """
    task = find_task(recipe.task)
    check_task(task.spec, recipe)
    file_shapes = whole_shapes(manifest, WEIGHTS)

    # A recipe is not trusted. Each layer of a built-in architecture has at least one tensor, so a recipe that claims
    # millions of layers is rejected before its model is built.
    layers = 0
    if recipe.model.architecture in OPTIONS:
        keys = (*FAMILIES[recipe.model.family].layers, "layers")
        layers = sum(getattr(recipe.model, key, 0) for key in keys)
    if layers > len(file_shapes):
        raise InputError(
            f"{manifest.folder}: the weights do not fit the recipe, which has {layers} layers, more "
            f"than {WEIGHTS} has tensors"
        )

    # Then the model is built without allocating memory, and compared with the file, before a real one is built.
    with custom_code_errors(recipe, f"the model of {manifest.folder} cannot be built"):
        try:
            with meta_device():
                model = task.build(recipe, tokenizers)
                if recipe.train.lora is not None:
                    from heedful.nn.lora import add_updates

                    add_updates(model, recipe.train.lora)
        except (RuntimeError, OverflowError, ZeroDivisionError) as error:  # torch cannot represent a size
            raise InputError(
                f"{manifest.folder}: the sizes in its recipe are invalid ({error}): restore the model from an intact "
                "copy"
            ) from error
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    files = files_of(manifest, WEIGHTS)
    file_bytes = sum(manifest.files[file].bytes for file in files)
    if file_bytes > MAX_NUMBER_BYTES * sum(shape.numel() for shape in shapes.values()) + MAX_HEADER_BYTES:
        raise InputError(
            f"{manifest.folder}: {WEIGHTS} has {file_bytes:,} bytes, too many for the recipe's model: "
            "restore the model from an intact copy"
        )
    # Checksums are compared before shapes, so that a damaged header is reported as damage, not as a different model.
    for file in files:
        manifest.verify(file)
    if problems := misfits(shapes, file_shapes):
        raise InputError(f"{manifest.folder}: the weights do not fit the recipe: {'; '.join(problems)}")
    return task.build(recipe, tokenizers)
