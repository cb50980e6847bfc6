"""Shared code of the converters: formats, recipes of converted models, and model folders in the Hugging Face layout."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.architectures import weights
from heedful.architectures.model import dtype_problem
from heedful.config.defaults import merge
from heedful.config.families import FAMILIES
from heedful.config.load import recipe_from_dict
from heedful.config.schema import ModelConfig, Recipe, TrainConfig
from heedful.convert.settings import CONFIG, names_of, reject_lfs_pointers
from heedful.convert.weights import (
    SINGLE,
    Names,
    Weights,
    check_rows,
    check_weights,
    read_safetensors,
    split_by_name,
    write_safetensors,
)
from heedful.errors import InputError
from heedful.machine import is_out_of_memory
from heedful.nn.lora import Adapter
from heedful.nn.meta_device import meta_device
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.storage.paths import no_folder
from heedful.tasks import find_task
from heedful.tasks.task import Task
from heedful.text.hugging_face import from_hugging_face, to_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

NUMBERS = r".*(?:\.position_ids|\.attn\.(?:masked_)?bias)"  # positions and masks, which are not weights
GENERATION = "generation_config.json"
DTYPE = "torch_dtype"  # the key in config.json
PRECISIONS = ("float32", "bfloat16", "float16")  # of weights in safetensors

# Errors raised by settings of the wrong type or size, or weights of the wrong shape, that no check catches earlier.
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model in heedful's format during conversion: recipe, tokenizers and weights."""

    recipe: Recipe
    tokenizers: TokenizerPair
    weights: Weights  # by heedful's names
    left_out: Weights = field(default_factory=dict)  # weights that heedful does not use, by the other format's names
    notes: tuple[str, ...] = ()  # sentences for the user about limits of the conversion
    adapter: Adapter | None = None  # the LoRA updates, which are merged into the weights
    card: str = ""  # README.md of the exported model


def renumbering_note(model: Model) -> tuple[str, ...]:
    """Return a note if the token ids of a converted model differ from the original's: special tokens come first."""
    if model.tokenizers.source.config.kind != "foreign":
        return ()
    return (
        "token ids differ from those of the original model, as special tokens come first: use this folder's tokenizer",
    )


@dataclass(frozen=True, kw_only=True)
class Format:
    """Model format of another toolkit that heedful reads.

    Attributes:
        tasks: Tasks that a converted model can have.
        file: The file in a model folder that gives the type of the model.
        kinds: The types in that file that identify the format, such as "bert" for model_type.
        reader: Reads a model folder in the format, for a task; None stands for the task that the model's files imply.
        names: Table of weight names in heedful and in Hugging Face's modules, for converting PEFT adapters; None if
            these modules differ from heedful's.
        keys: Key of `file` -> field of `ModelConfig`, for messages.
    """

    tasks: tuple[type[Task], ...]
    file: str = CONFIG
    kinds: tuple[str, ...]
    reader: Callable[[Path, str | None], Model]
    names: Names | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def read(self, folder: Path, task: str | None = None) -> Model:
        """Read a model folder, convert the model to heedful, and check its weights.

        Raises:
            InputError: The folder cannot be read, or the model does not fit heedful's; all differences are listed.
        """
        if not folder.is_dir():
            raise InputError(no_folder(folder, "give the folder with the files of a model"))
        reject_lfs_pointers(folder)
        if task is not None and not issubclass(find_task(task), self.tasks):
            raise InputError(
                f'{folder}: this model can be converted for {names_of(self.tasks)}, not for "{task}"; for another '
                "task, train a model that starts from the converted one, with train.start"
            )
        try:
            model = self.reader(folder, task)
            recipe = model.recipe
            shapes = shapes_of(lambda: find_task(recipe.task).build(recipe, model.tokenizers))
        except InputError as error:
            raise InputError(self.in_their_terms(str(error), folder)) from error
        except BROKEN as error:
            # torch.OutOfMemoryError is a RuntimeError as well, but is not caused by the folder.
            if is_out_of_memory(error):
                raise
            raise InputError(
                f"{folder}: has an invalid setting or weight ({type(error).__name__}: {error}); download it again"
            ) from error
        check_weights(model.weights, shapes, f'{folder}, for task = "{recipe.task}"')
        return model

    def in_their_terms(self, message: str, folder: Path) -> str:
        """Replace the keys of a recipe in a message by the keys of the model's file that they were read from."""
        theirs = {ours: key for key, ours in reversed([*self.keys.items()])}
        named = [name for name in dict.fromkeys(re.findall(r"\bmodel\.(\w+)", message)) if name in theirs]
        for name in named:
            message = re.sub(rf"(?:model\.)?\b{name}\b", theirs[name], message)
        return message.replace(f"{folder}:", f"{folder / self.file}:", 1) if named else message


def converted_recipe(
    task: str, fields: Mapping[str, Any], tokenizers: TokenizerPair, folder: Path, **tables: Mapping[str, Any]
) -> Recipe:
    length = fields.get("max_positions", ModelConfig.max_positions)
    positions = length if isinstance(length, int) else 0  # other types are rejected by `recipe_from_dict`
    # If all matrices are tied, the vocabulary is shared, even if two tokenizers split the texts, as in Marian.
    joint = tokenizers.joint or fields.get("tie", "all") == "all"
    # The recipe has to pass all checks, so the longest text must fit into a batch: `batch_tokens` >= `positions`.
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
    if problem := dtype_problem(split_by_name(tensors, NUMBERS)[0]):
        raise InputError(f"{folder}: {problem}; quantised models cannot be converted: use the original weights")
    return {name: value.float() for name, value in tensors.items()}


def read_tokenizer(folder: Path, rows: int, *, begins: bool = True) -> tuple[TokenizerPair, NDArray[np.int64]]:
    """Read a Hugging Face tokenizer for embeddings with `rows` rows.

    Return the tokenizer, and the row of each of heedful's ids, or -1 for ids without a row. `begins` is explained in
    `from_hugging_face`.
    """
    tokenizer, old_id_of = from_hugging_face(folder, begins=begins)
    check_rows(old_id_of, rows, str(folder))
    return TokenizerPair(tokenizer, tokenizer), old_id_of


def heads_note(left_out: Weights, heads: str) -> tuple[str, ...]:
    """Return a note for the user if weights left out of a conversion belong to a task head (names matching `heads`)."""
    if not split_by_name(left_out, heads)[1]:
        return ()
    return (
        "only heads that predict tokens are read: for classes, tags or answers, fine-tune the converted model, with "
        "train.start",
    )


def shapes_of(build: Callable[[], nn.Module]) -> Weights:
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

    Source and target share one vocabulary. If their tokenizers split text differently, the source tokenizer is next to
    the weights, and the target tokenizer in the subfolder "target"; either can decode the model's outputs.

    Args:
        model: A heedful model.
        tensors: Weights of the model, by the names of the other format.
        config: Contents of config.json, with the data type of the weights but without vocabulary size and special
            tokens.
        folder: The folder to write, new or empty.
        absent: Special tokens that have no row in `tensors`, as in `to_hugging_face`.
        files: Contents of further JSON files, by name.
        segments: False for an encoder that ignores which segment a token belongs to.

    Returns:
        The number of values in the weights.
    """
    family, tokenizers = FAMILIES[model.recipe.model.family], model.tokenizers
    length = model.recipe.model.max_positions if family.pairs else model.recipe.data.max_length
    # An absent token lowers all later ids by one: in config.json, in the tokenizer, and in the rows of `tensors`.
    present = [i for i in range(len(tokenizers.source)) if i not in absent]
    begin = EOS if BOS in absent or family.causal else BOS  # a GPT has no <bos>: its texts follow an <eos>
    special = {"pad_token_id": PAD, "bos_token_id": begin, "eos_token_id": EOS}
    ids = {key: present.index(i) for key, i in special.items() if i in present}
    contents: dict[str, Any] = {CONFIG: {**config, **ids, "vocab_size": len(present)}}
    if family.writes:
        # heedful never generates <pad> and <bos>; bad_words_ids forbids both in `generate` of transformers too.
        suppressed = [[present.index(i)] for i in (PAD, BOS) if i in present]
        start = {"decoder_start_token_id": ids["bos_token_id"]} if family.pairs else {}
        contents[GENERATION] = {**ids, **start, "bad_words_ids": suppressed or None}

    def write_tokenizers(path: Path) -> None:
        name = model.recipe.model.family
        to_hugging_face(tokenizers.source, path, name, length, absent, segments=segments)
        if not tokenizers.joint:
            to_hugging_face(tokenizers.target, path / "target", name, length)

    return write_files(tensors, contents | dict(files or {}), folder, write_tokenizers)


def write_files(
    tensors: Mapping[str, Tensor],
    files: Mapping[str, Any],
    folder: Path,
    write_others: Callable[[Path], None] = lambda _: None,
    *,
    ensure_ascii: bool = True,
) -> int:
    """Write a new model folder with weights, JSON files and other files; return the number of values in the weights.

    The weights get the data type given in config.json.
    """
    check_empty(folder)
    dtype = getattr(torch, files[CONFIG][DTYPE])
    tensors = {name: value.to(dtype) for name, value in tensors.items()}
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        write_others(writer.path)
        write_safetensors(writer.path / SINGLE, tensors)
        for name, contents in files.items():
            writer.write(name, [(json.dumps(contents, indent=2, ensure_ascii=ensure_ascii) + "\n").encode("utf-8")])
    return count_values(tensors)


def check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: already exists; choose a folder that is new or empty")


def count_values(tensors: Mapping[str, Tensor]) -> int:
    return sum(value.numel() for value in tensors.values())
