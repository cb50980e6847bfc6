"""Converted models: model formats, recipes of converted models, and model folders in the Hugging Face layout."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.architectures import weights
from heedful.architectures.model import wrong_types
from heedful.config.families import FAMILIES
from heedful.config.load import merge, recipe_from_dict
from heedful.config.schema import ModelConfig, Recipe, TrainConfig
from heedful.convert.settings import CONFIG, names_of
from heedful.convert.vocabulary import check_rows
from heedful.convert.weights import SINGLE, Weights, compare, read_safetensors, without, write_safetensors
from heedful.errors import InputError
from heedful.machine import is_out_of_memory
from heedful.nn.meta_device import meta_device
from heedful.storage.atomic import FolderWriter, atomic_folder, named_write_errors
from heedful.storage.paths import no_folder
from heedful.tasks import find_task
from heedful.tasks.task import Task
from heedful.text.hugging_face import from_hugging_face, to_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

NUMBERS = r".*(?:\.position_ids|\.attn\.(?:masked_)?bias)"  # positions and masks, which other toolkits store as well
GENERATION = "generation_config.json"

# What settings of a wrong type or size, and weights of a wrong shape, end in where no check names them.
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model in heedful's format during conversion: recipe, tokenizers and weights."""

    recipe: Recipe
    tokenizers: TokenizerPair
    weights: Weights  # by heedful's names
    left_out: Weights = field(default_factory=dict)  # weights without a use in heedful, by the other format's names
    notes: tuple[str, ...] = ()  # sentences for the user about limits of the conversion


def read_only(_model: Model, folder: Path) -> int:
    """Stand-in writer for model formats that heedful can only read; always raises an InputError."""
    raise InputError(f"{folder}: models of this format can be read only; choose another format")


def renumbered(model: Model) -> tuple[str, ...]:
    """Sentence about the ids of a converted model that goes out again: conversion has put special tokens first."""
    if model.tokenizers.source.config.kind != "foreign":
        return ()
    return (
        "tokens have other ids than in the model that came in, special tokens first: use the tokenizer of this folder",
    )


@dataclass(frozen=True, kw_only=True)
class Format:
    """Model format of another toolkit: reads its models into heedful, and writes heedful's models in the format.

    Attributes:
        reader: Reads a model folder in the format, for a task; None: for the one that the model was made for.
        tasks: Tasks that a converted model can have.
        writer: Writes a Transformer to a folder in the format, and returns the number of values in the weights.
        architecture: The architecture of the models in heedful.
        changes: Gives sentences about what writing changes in the form of a model.
    """

    reader: Callable[[Path, str | None], Model]
    tasks: tuple[type[Task], ...]
    writer: Callable[[Model, Path], int] = read_only
    architecture: str = ModelConfig.architecture
    changes: Callable[[Model], tuple[str, ...]] = lambda _: ()

    def write(self, model: Model, folder: Path) -> int:
        """Write a model of heedful to a folder in the format, and return the number of values in the weights."""
        architecture = model.recipe.model.architecture
        if architecture != self.architecture:
            raise InputError(
                f'the model "{model.recipe.name}" cannot be converted: its architecture is "{architecture}", and '
                f'models of this format have the architecture "{self.architecture}"'
            )
        return self.writer(model, folder)

    def read(self, folder: Path, task: str | None = None) -> Model:
        """Read a model folder, convert the model to heedful, and check its weights.

        Raises:
            InputError: The folder cannot be read, or the model does not fit heedful's; all differences are listed.
        """
        if not folder.is_dir():
            raise InputError(no_folder(folder, "name the one that holds the files of a model"))
        if task is not None and not issubclass(find_task(task), self.tasks):
            raise InputError(
                f'{folder}: this model can be for {names_of(self.tasks)}, and not for "{task}"; for another task train '
                "one that begins with the converted model, by train.start"
            )
        try:
            model = self.reader(folder, task)
            recipe = model.recipe
            build = find_task(recipe.task).build
            weights = expected(lambda: build(recipe, model.tokenizers))
        except BROKEN as error:
            if is_out_of_memory(error):
                raise
            raise InputError(
                f"{folder}: a setting or a weight of it makes no sense ({type(error).__name__}: {error}); get "
                "its files again"
            ) from error
        compare(model.weights, weights, f'{folder}, for task = "{recipe.task}"')
        return model


def recipe_of(
    task: str, fields: Mapping[str, Any], tokenizers: TokenizerPair, folder: Path, **tables: Mapping[str, Any]
) -> Recipe:
    """Build the recipe of a converted model."""
    length = fields.get("max_positions", ModelConfig.max_positions)
    positions = length if isinstance(length, int) else 0  # what is no number is refused below
    joint = tokenizers.joint or fields.get("tie", "all") == "all"
    values = {
        "name": folder.resolve().name,
        "task": task,
        "data": {"max_length": length},
        "tokenizer": asdict(replace(tokenizers.source.config, joint=joint)),
        "model": dict(fields),
        "train": {"batch_tokens": max(positions, TrainConfig.batch_tokens)},
    }
    return recipe_from_dict(merge(values, tables), str(folder))


def read_weights(folder: Path) -> Weights:
    """Read the safetensors weights of a model folder as float32 tensors by name."""
    tensors = read_safetensors(folder)
    if problem := wrong_types(without(tensors, NUMBERS)[0]):
        raise InputError(f"{folder}: {problem}; quantised models are not read: get the weights that it was made from")
    return {name: value.float() for name, value in tensors.items()}


def read_tokenizer(folder: Path, rows: int) -> tuple[TokenizerPair, NDArray[np.int64]]:
    """Read a tokenizer of Hugging Face, for embeddings of so many rows, and the row of each of heedful's ids, or -1."""
    tokenizer, old_id_of = from_hugging_face(folder)
    check_rows(old_id_of, rows, str(folder))
    return TokenizerPair(tokenizer, tokenizer), old_id_of


def heads_note(left_out: Weights, heads: str) -> tuple[str, ...]:
    """Note for the user if weights left out of a conversion belong to a task head (names matching `heads`)."""
    if not without(left_out, heads)[1]:
        return ()
    return (
        "of heads only those that predict tokens are read: for classes, tags or answers fine-tune the converted "
        "model, with train.start",
    )


def expected(build: Callable[[], nn.Module]) -> Weights:
    """Build a model on the meta device and return its weights by name: shapes only, without memory for values."""
    with meta_device():
        return weights(build())


def write_hugging_face(
    model: Model,
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    folder: Path,
    absent: Collection[int] = (),
    files: Mapping[str, Any] | None = None,
    *,
    segments: bool = True,
) -> int:
    """Write a model folder that Hugging Face `transformers` loads: weights, config.json and tokenizer.

    heedful never generates <pad> and <bos>; bad_words_ids forbids both in `generate` of transformers too.

    Source and target share one vocabulary. If their tokenizers cut text in two ways, the source tokenizer is written
    beside the weights, and decodes any output of the model too; the target tokenizer goes into the subfolder "target".

    Args:
        model: A model of heedful.
        tensors: Weights of the model, by the names of the other format.
        config: Contents of config.json, without vocabulary size and ids of special tokens.
        folder: The folder to write, new or empty.
        absent: Special tokens that have no row in `tensors`, as in `to_hugging_face`.
        files: Further JSON files: their names and contents.
        segments: False for an encoder that does not read which segment a token belongs to.

    Returns:
        The number of values in the weights.
    """
    check_empty(folder)
    family, recipe = model.recipe.model.family, model.recipe
    length = recipe.model.max_positions if FAMILIES[family].pairs else recipe.data.max_length
    present = [i for i in range(len(model.tokenizers.source)) if i not in absent]
    special = {"pad_token_id": PAD, "bos_token_id": EOS if BOS in absent else BOS, "eos_token_id": EOS}
    ids = {key: present.index(i) for key, i in special.items() if i in present}
    never = [[present.index(i)] for i in (PAD, BOS) if i in present]
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        to_hugging_face(model.tokenizers.source, writer.path, family, length, absent, segments=segments)
        if not model.tokenizers.joint:
            to_hugging_face(model.tokenizers.target, writer.path / "target", family, length)
        write_safetensors(writer.path / SINGLE, tensors)
        _write(writer, CONFIG, {**config, **ids, "vocab_size": len(present)})
        if FAMILIES[family].writes:
            generation = {**ids, "decoder_start_token_id": ids["bos_token_id"], "bad_words_ids": never or None}
            _write(writer, GENERATION, generation)
        for name, contents in (files or {}).items():
            _write(writer, name, contents)
    return count(tensors)


def write_files(
    tensors: Mapping[str, Tensor], files: Mapping[str, Any], folder: Path, *, ensure_ascii: bool = True
) -> int:
    """Write a new model folder with weights and JSON files; returns the number of values in the weights."""
    check_empty(folder)
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        write_safetensors(writer.path / SINGLE, tensors)
        for name, contents in files.items():
            _write(writer, name, contents, ensure_ascii=ensure_ascii)
    return count(tensors)


def check_empty(folder: Path) -> None:
    """Check that a folder to write is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: name a folder that is new or empty")


def count(tensors: Mapping[str, Tensor]) -> int:
    """Number of values in all weight tensors together."""
    return sum(value.numel() for value in tensors.values())


def _write(writer: FolderWriter, name: str, contents: Any, *, ensure_ascii: bool = True) -> None:
    writer.write(name, [(json.dumps(contents, indent=2, ensure_ascii=ensure_ascii) + "\n").encode("utf-8")])
