"""Write the bytes of checkpoints and model folders.

A checkpoint is a folder that is either complete or absent: its files are written to a temporary folder, the manifest
with their checksums last, and flushed; then one rename gives the folder its name (`storage.atomic`). The manifest shows
whether a folder is complete (`storage.complete_folder`). `checkpoints` decides which checkpoints of a run are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.checkpoint.description import QUANTISED, RECIPE, TOKENIZER
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.safetensors_format import part_file, part_name, tensor_file
from heedful.config.load import recipe_to_dict
from heedful.config.schema import Recipe
from heedful.distributed.shards import local
from heedful.errors import InputError, RunError
from heedful.storage.atomic import Content, FolderWriter, write_folder
from heedful.storage.complete_folder import CARD, ENGINES, MANIFEST, json_bytes
from heedful.storage.disk import DISK, Storage
from heedful.storage.written_files import is_foreign
from heedful.text.tokenizer_pair import TokenizerPair

OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Checkpoint of a training run: everything that is needed to resume training."""

    step: int  # number of updates
    recipe: Recipe
    tokenizers: TokenizerPair
    weights: dict[str, Tensor]  # float32 master weights; after loading, they and the optimizer state are on the CPU
    optimizer: dict[str, Tensor]
    state: dict[str, Any]  # strict JSON: no tuples, string keys, no NaN; floats are exact to the last bit

    @property
    def facts(self) -> dict[str, Any]:
        """Manifest entries about the folder as a whole: its kind, and the number of updates."""
        return {"kind": "checkpoint", "step": self.step}

    def check_finite(self) -> None:
        """Check that all weights of this process are finite, so that no checkpoint with NaN replaces a good one."""
        for name, value in self.weights.items():
            # With numpy: in a thread that saves, torch would start more threads, which slow down training.
            if not np.isfinite(local(value).float().numpy(force=True)).all():
                raise RunError(
                    f"step {self.step} is not saved, because the weight {name} is not finite: resume from the last "
                    "checkpoint with a lower learning rate"
                )


def write_checkpoint(folder: Path, checkpoint: Checkpoint, storage: Storage) -> None:
    """Write a checkpoint atomically."""
    checkpoint.check_finite()
    files: dict[str, Content] = {
        **model_files(checkpoint.recipe, checkpoint.tokenizers, checkpoint.weights),
        OPTIMIZER: tensor_file(checkpoint.optimizer),
        STATE: [json_bytes(checkpoint.state)],
    }
    write_folder(folder, files, checkpoint.facts, storage)


def write_shard(writer: FolderWriter, checkpoint: Checkpoint, rank: int, world_size: int) -> None:
    """Write and flush this process's rows of the weights and the optimizer state."""
    checkpoint.check_finite()
    for name, tensors in ((WEIGHTS, checkpoint.weights), (OPTIMIZER, checkpoint.optimizer)):
        writer.write(part_name(name, rank, world_size), part_file(tensors, is_rank_zero=rank == 0))
    # Each process flushes its files: on a network file system, rank zero cannot flush what other machines wrote.
    writer.flush()


def seal_shards(writer: FolderWriter, checkpoint: Checkpoint) -> None:
    """Write the files of a sharded checkpoint that are not sharded: recipe, tokenizers, state, and manifest."""
    description = description_files(checkpoint.recipe, checkpoint.tokenizers)
    for name, content in {**description, STATE: [json_bytes(checkpoint.state)]}.items():
        writer.write(name, content)
    writer.seal(checkpoint.facts)


def write_model(
    folder: Path,
    recipe: Recipe,
    tokenizers: TokenizerPair,
    weights: Mapping[str, Tensor],
    dtype: str = "float32",
    storage: Storage = DISK,
    update: int | None = None,
) -> None:
    """Write a model folder atomically, replacing an existing model.

    Raises:
        InputError: The folder contains other files, or a model card that somebody has changed; or `dtype` is int8 or
            int4 and a weight is not finite.
        RunError: Writing failed.
    """
    folder = folder.resolve()
    if dtype in QUANTISED:
        from heedful.checkpoint.quantisation import quantised

        tensors = quantised(weights, dtype)
    else:
        tensors = {name: value.to(getattr(torch, dtype)) for name, value in weights.items()}
    try:
        model_names = {MANIFEST, RECIPE, WEIGHTS, TOKENIZER, ENGINES} | (set() if is_foreign(folder / CARD) else {CARD})
        # The folder is replaced as a whole, so any other files in it would be lost.
        if folder.is_file():
            raise InputError(f"{folder}: is a file; choose a folder that does not exist")
        if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= model_names):
            raise InputError(
                f"{folder} contains something other than a heedful model: choose a folder that does not exist"
            )
        facts = {"kind": "model"} | ({"weights": dtype} if dtype in QUANTISED else {})
        facts |= {} if update is None else {"update": update}
        write_folder(folder, model_files(recipe, tokenizers, tensors), facts, storage)
    except OSError as error:
        raise RunError(
            f"cannot write the model {folder} ({error.strerror}): check the disk's free space and permissions"
        ) from error


def model_files(recipe: Recipe, tokenizers: TokenizerPair, weights: Mapping[str, Tensor]) -> dict[str, Content]:
    """Return the contents of a model folder's files by name, except the manifest; a checkpoint also has these files."""
    return {**description_files(recipe, tokenizers), WEIGHTS: tensor_file(weights)}


def description_files(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Content]:
    """Return the contents of the recipe and tokenizer files by name."""
    source_vocab, target_vocab = tokenizers.sizes
    document = {"recipe": recipe_to_dict(recipe), "source_vocab": source_vocab, "target_vocab": target_vocab}
    return {
        RECIPE: [json_bytes(document)],
        **{f"{TOKENIZER}/{name}": [content] for name, content in tokenizers.files().items()},
    }
