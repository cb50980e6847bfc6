"""A model on its way from one format to another, and the folders of Hugging Face."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shutil import copymode
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from heedful.config.families import FAMILIES
from heedful.config.load import recipe_from_dict
from heedful.config.presets import merge
from heedful.config.schema import ModelConfig, Recipe, TrainConfig
from heedful.convert.names import Weights, compare, without
from heedful.convert.settings import CONFIG, names_of
from heedful.convert.weights import SINGLE, read_safetensors
from heedful.errors import InputError, RunError
from heedful.models import weights
from heedful.tasks import find_task
from heedful.tasks.task import Task
from heedful.text.export import to_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

GENERATION = "generation_config.json"


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a model folder of heedful holds."""

    recipe: Recipe
    tokenizers: TokenizerPair
    weights: Weights  # by heedful's names
    left_out: Weights = field(default_factory=dict)  # by the names of the format: what heedful has no use for
    notes: tuple[str, ...] = ()  # sentences about what its user has to know


@runtime_checkable
class ModelReader(Protocol):
    """Reads a model from a folder, for a task or for the one that it was made for."""

    def __call__(self, folder: Path, task: str | None = None) -> Model:
        """The model as one of heedful."""
        ...


def read_only(_model: Model, folder: Path) -> int:
    """What writes a format that heedful can only read.

    Raises:
        InputError: Always.
    """
    raise InputError(f"{folder}: models of this format can be read only; choose another format")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of models: reads its models into heedful and writes them.

    Attributes:
        reader: Reads one.
        tasks: What those that are read can be for.
        write: Writes one, and returns how many numbers its weights are.
    """

    reader: ModelReader
    tasks: tuple[type[Task], ...]
    write: Callable[[Model, Path], int] = read_only

    def read(self, folder: Path, task: str | None = None) -> Model:
        """A model as one of heedful, complete for its task.

        Args:
            folder: Where it is.
            task: What for; None: what it was made for.

        Raises:
            InputError: The folder is missing or cannot be read, its model is none of heedful's, or it lacks what the
                task needs.
        """
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; name the one that holds the files of a model")
        if task is not None and not issubclass(find_task(task), self.tasks):
            raise InputError(
                f'{folder}: this model can be for {names_of(self.tasks)}, and not for "{task}"; for another task train '
                "one that begins with the converted model, by train.start"
            )
        model = self.reader(folder, task)
        recipe = model.recipe
        wanted = find_task(recipe.task)
        weights = expected(lambda: wanted.build(recipe, model.tokenizers))
        compare(model.weights, weights, f'{folder}, for task = "{recipe.task}"')
        return model


def recipe_of(
    task: str, fields: Mapping[str, Any], tokenizers: TokenizerPair, folder: Path, **tables: Mapping[str, Any]
) -> Recipe:
    """The recipe of a converted model.

    Args:
        task: What it is for.
        fields: Those of `ModelConfig` that are not the default.
        tokenizers: Its own.
        folder: Where the model lies, which gives the recipe its name.
        tables: Other tables of the recipe.

    Raises:
        InputError: There can be no such model.
    """
    length = fields.get("max_positions", ModelConfig.max_positions)
    joint = tokenizers.joint or fields.get("tie", "all") == "all"
    values = {
        "name": folder.resolve().name,
        "task": task,
        "data": {"max_length": length},
        "tokenizer": asdict(replace(tokenizers.source.config, joint=joint)),
        "model": dict(fields),
        "train": {"batch_tokens": max(length, TrainConfig.batch_tokens)},
    }
    return recipe_from_dict(merge(values, tables), str(folder))


def read_weights(folder: Path) -> Weights:
    """The weights of a model folder as float32, by name.

    Raises:
        InputError: As `read_safetensors`.
    """
    return {name: value.float() for name, value in read_safetensors(folder).items()}


def heads_note(left_out: Weights, heads: str) -> tuple[str, ...]:
    """What to say where weights are left out that belong to a head, by a pattern of names."""
    if not without(left_out, heads)[1]:
        return ()
    return (
        "of heads only those that predict tokens are read: for classes, tags or answers fine-tune the converted "
        "model, with train.start",
    )


def expected(build: Callable[[], nn.Module]) -> Weights:
    """The weights of a model by name: shapes without values, which take no memory."""
    with torch.device("meta"):
        return weights(build())


def write_hugging_face(
    model: Model,
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    folder: Path,
    absent: Collection[int] = (),
    files: Mapping[str, Any] | None = None,
) -> int:
    """Write a folder that `transformers` loads: weights, settings and tokenizer.

    What heedful never says, <pad> and <bos>, is forbidden to `generate` there too.

    Source and target are cut into pieces of one vocabulary. Where they are cut in two ways, the tokenizer beside the
    weights is the source's, which reads any output of the model too, and the target's stands in a folder in it.

    Args:
        model: A model of heedful.
        tensors: Its weights by the names of the format.
        config: The settings of the format.
        folder: Where to write.
        absent: Special tokens that have no row in `tensors`, as in `to_hugging_face`.
        files: Further JSON files: their names and contents.

    Returns:
        How many numbers the weights are.

    Raises:
        InputError: The folder is not empty, or the tokenizer has no counterpart there.
        RunError: It cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: name a folder that is new or empty")
    family, recipe = model.recipe.model.family, model.recipe
    length = recipe.model.max_positions if FAMILIES[family].pairs else recipe.data.max_length
    kept = [i for i in range(len(model.tokenizers.source)) if i not in absent]
    special = {"pad_token_id": PAD, "bos_token_id": EOS if BOS in absent else BOS, "eos_token_id": EOS}
    ids = {key: kept.index(i) for key, i in special.items() if i in kept}
    never = [[kept.index(i)] for i in (PAD, BOS) if i in kept]
    try:
        to_hugging_face(model.tokenizers.source, folder, family, length, absent)
        if not model.tokenizers.joint:
            to_hugging_face(model.tokenizers.target, folder / "target", family, length)
        save_file(dict(tensors), folder / SINGLE, metadata={"format": "pt"})
        settings = {**config, **ids, "vocab_size": len(kept)}
        _write(folder / CONFIG, settings)
        copymode(folder / CONFIG, folder / SINGLE)  # which safetensors lets nobody else read
        if FAMILIES[family].writes:
            generation = {**ids, "decoder_start_token_id": ids["bos_token_id"], "bad_words_ids": never or None}
            _write(folder / GENERATION, generation)
        for name, contents in (files or {}).items():
            _write(folder / name, contents)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return count(tensors)


def count(tensors: Mapping[str, Tensor]) -> int:
    """How many numbers weights are."""
    return sum(value.numel() for value in tensors.values())


def _write(path: Path, contents: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")
