"""Model folder: all files that a model needs, and the model, built once they hold what the recipe asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import TypeAdapter
from torch import Tensor

from heedful.architectures import Model
from heedful.architectures.model import misfits, wrong_types
from heedful.checkpoint.tensors import read_shapes, read_whole, tensor_file
from heedful.config.families import FAMILIES
from heedful.config.load import current_keys, recipe_from_dict, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.config.user_code import errors_of_own_code
from heedful.config.validate import OPTIONS
from heedful.errors import InputError, RunError
from heedful.nn.meta_device import meta_device
from heedful.storage.atomic import Content, write_folder
from heedful.storage.disk import DISK, MAX_SETTINGS_BYTES, Storage
from heedful.storage.manifest import MANIFEST, Manifest, json_text, parse, read_manifest
from heedful.tasks import find_task
from heedful.tasks.task import check
from heedful.text.tokenizer import DEFINITION, DESCRIPTION, LARGEST
from heedful.text.tokenizer_pair import JOINT, SOURCE, TARGET, NoTokenizers, TokenizerPair

RECIPE = "recipe.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer"


@dataclass(frozen=True)
class ModelDescription:
    """Content of `recipe.json`: the resolved recipe and the vocabulary sizes."""

    recipe: dict[str, Any]
    source_vocab: int  # number of tokens, special tokens included
    target_vocab: int


DESCRIPTIONS = TypeAdapter(ModelDescription)


def write_model(
    folder: Path,
    recipe: Recipe,
    tokenizers: TokenizerPair,
    weights: Mapping[str, Tensor],
    dtype: Literal["float32", "bfloat16"] = "float32",
    storage: Storage = DISK,
    update: int | None = None,
) -> None:
    """Write a model folder atomically; an existing model in the folder is replaced."""
    folder = folder.resolve()
    tensors = {name: value.to(getattr(torch, dtype)) for name, value in weights.items()}
    try:
        files_of_a_model = {MANIFEST, RECIPE, WEIGHTS, TOKENIZER}
        if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= files_of_a_model):
            raise InputError(f"{folder} holds something else than a heedful model: give a name that is free")
        facts = {"kind": "model"} | ({} if update is None else {"update": update})
        write_folder(folder, model_files(recipe, tokenizers, tensors), facts, storage)
    except OSError as error:
        raise RunError(
            f"cannot write the model {folder} ({error.strerror}): look at the disk's free space and rights"
        ) from error


def average(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Average the weights of several models or checkpoints, summed in float64 and returned as float32."""
    if not folders:
        raise InputError("there is nothing to average: give at least one checkpoint")
    first, *others = folders
    total = {name: value.double() for name, value in read_weights(read_manifest(first)).items()}
    for folder in others:
        weights = read_weights(read_manifest(folder))
        if weights.keys() != total.keys() or any(value.shape != total[name].shape for name, value in weights.items()):
            raise InputError(f"{folder} and {first} hold different models: only weights of one model have a mean")
        for name, value in weights.items():
            total[name] += value
    return {name: (value / len(folders)).float() for name, value in total.items()}


def model_files(recipe: Recipe, tokenizers: TokenizerPair, weights: Mapping[str, Tensor]) -> dict[str, Content]:
    """Return the contents of a model folder's files by name, without the manifest; a checkpoint has the same files."""
    return {**description_files(recipe, tokenizers), WEIGHTS: tensor_file(weights)}


def description_files(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Content]:
    """Return the contents of the files beside the weights: recipe and tokenizers."""
    description = ModelDescription(recipe_to_dict(recipe), *tokenizers.sizes)
    return {
        RECIPE: [json_text(vars(description))],
        **{f"{TOKENIZER}/{name}": [content] for name, content in tokenizers.files().items()},
    }


def read_description(manifest: Manifest) -> tuple[Recipe, TokenizerPair]:
    """Read the recipe and the tokenizers of a model folder, and verify them."""
    path = manifest.verified(RECIPE, MAX_SETTINGS_BYTES)
    description = parse(path, lambda data: DESCRIPTIONS.validate_json(data, strict=True))
    recipe = recipe_from_dict(current_keys(description.recipe), str(path))
    tokenizers = read_tokenizers(manifest)
    made_for = (description.source_vocab, description.target_vocab)
    sizes = tokenizers.sizes
    if made_for != sizes:
        raise InputError(
            f"{manifest.folder}: the model was made for vocabularies of {made_for[0]} and {made_for[1]} tokens, "
            f"its tokenizers have {sizes[0]} and {sizes[1]}: put the tokenizers there that it was trained with"
        )
    return recipe, tokenizers


def read_tokenizers(manifest: Manifest) -> TokenizerPair:
    """Read the tokenizers of a model folder, and verify them; files that the manifest does not list are not read."""
    if not any(name.startswith(f"{TOKENIZER}/") for name in manifest.files):
        return NoTokenizers()
    layout = (SOURCE, TARGET) if f"{TOKENIZER}/{SOURCE}/{DEFINITION}" in manifest.files else (JOINT,)
    for part in layout:
        for name in (DEFINITION, DESCRIPTION):
            manifest.verified(f"{TOKENIZER}/{part}/{name}", LARGEST)
    return TokenizerPair.load(manifest.folder / TOKENIZER, layout)


def read_weights(manifest: Manifest) -> dict[str, Tensor]:
    """Read the weights of a model folder, verified, in the stored type, on the CPU."""
    weights = read_whole(manifest, WEIGHTS)
    if problem := wrong_types(weights):
        raise InputError(f"{manifest.folder}: {problem}: copy the model again from where it is whole")
    return weights


LARGEST_NUMBER = 8  # bytes
LARGEST_HEADER = 10**8  # bytes that the safetensors library reads as a header


def build_fitting(manifest: Manifest, recipe: Recipe, tokenizers: TokenizerPair) -> Model:
    """Build the model of a folder with random weights, in which those of the folder have a place."""
    task = find_task(recipe.task)
    check(task, recipe)
    file_shapes = read_shapes(manifest.sized(WEIGHTS))

    # A recipe is not trusted: each layer of a built-in architecture has at least one tensor, so that one with millions
    # of layers is refused before its model is built.
    layers = 0
    if recipe.model.architecture in OPTIONS:
        keys = (*FAMILIES[recipe.model.family].layers, "layers")
        layers = sum(getattr(recipe.model, key, 0) for key in keys)
    if layers > len(file_shapes):
        raise InputError(
            f"{manifest.folder}: the weights do not fit the recipe, which has {layers} layers: more than "
            f"there are tensors in {WEIGHTS}"
        )

    # Then the model is built without memory, and compared with the file, before a real one is built.
    with errors_of_own_code(recipe, f"the model of {manifest.folder} cannot be built"):
        try:
            with meta_device():
                shapes = {
                    name: parameter.shape for name, parameter in task.build(recipe, tokenizers).named_parameters()
                }
        except (RuntimeError, OverflowError, ZeroDivisionError) as error:  # a product that is not a number of torch's
            raise InputError(
                f"{manifest.folder}: no model has the sizes of its recipe ({error}): copy the model again from where "
                "it is whole"
            ) from error
    largest = LARGEST_NUMBER * sum(shape.numel() for shape in shapes.values()) + LARGEST_HEADER
    if manifest.files[WEIGHTS].bytes > largest:
        raise InputError(
            f"{manifest.folder}: {WEIGHTS} has {manifest.files[WEIGHTS].bytes:,} bytes, more than the model of the "
            "recipe can have: copy the model again from where it is whole"
        )
    manifest.verified(WEIGHTS)
    if problems := misfits(shapes, file_shapes):
        raise InputError(f"{manifest.folder}: the weights do not fit the recipe: {'; '.join(problems)}")
    return task.build(recipe, tokenizers)
