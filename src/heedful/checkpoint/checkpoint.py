"""Checkpoint of a training run: its contents, the files that it is saved as, and their reading and checking."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from heedful.checkpoint.model_folder import model_files, read_description, read_weights
from heedful.checkpoint.tensors import read_whole, tensor_file
from heedful.config.schema import Recipe
from heedful.distributed import local
from heedful.errors import InputError, RunError
from heedful.storage.atomic import Content
from heedful.storage.disk import MAX_SETTINGS_BYTES
from heedful.storage.manifest import DamagedError, check, check_sizes, json_text, parse, read_manifest
from heedful.text.tokenizer_pair import TokenizerPair

OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Checkpoint of a training run: all that is needed to resume the training."""

    step: int  # updates made
    recipe: Recipe
    tokenizers: TokenizerPair
    weights: dict[str, Tensor]  # float32 masters; after loading they are on the CPU, as is the optimizer's state
    optimizer: dict[str, Tensor]
    state: dict[str, Any]  # strict JSON: no tuples, keys that are strings, no NaN; floats come back to the last bit


def facts(step: int) -> dict[str, Any]:
    """Return the facts in the manifest of a checkpoint."""
    return {"kind": "checkpoint", "step": step}


def checkpoint_files(checkpoint: Checkpoint) -> dict[str, Content]:
    """Return the contents of the files of a checkpoint by name, without the manifest."""
    return {
        **model_files(checkpoint.recipe, checkpoint.tokenizers, checkpoint.weights),
        OPTIMIZER: tensor_file(checkpoint.optimizer),
        STATE: [json_text(checkpoint.state)],
    }


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Read the checkpoint of a step, verified.

    Raises:
        DamagedError: A file is not what was saved, or it is of another step.
        InputError: Another version of heedful wrote it.
    """
    manifest = read_manifest(folder)
    if manifest.facts.get("step") != step:
        raise DamagedError(folder, "holds another step")
    recipe, tokenizers = read_description(manifest)
    return Checkpoint(
        step=step,
        recipe=recipe,
        tokenizers=tokenizers,
        weights=read_weights(manifest),
        optimizer=read_whole(manifest, OPTIMIZER),
        state=parse(manifest.verified(STATE, MAX_SETTINGS_BYTES), _document),
    )


def _document(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("no document")
    return document


def is_complete(folder: Path) -> bool:
    """True if all files of a checkpoint are there in their sizes."""
    try:
        check_sizes(folder)
    except InputError:
        return False
    return True


def is_intact(folder: Path) -> bool:
    """True if every byte of a checkpoint is the one that was saved."""
    try:
        check(folder)
    except InputError:
        return False
    return True


def check_finite(checkpoint: Checkpoint) -> None:
    """Check that all weights of a checkpoint that this process holds are finite.

    Raises:
        RunError: A weight is not.
    """
    for name, value in checkpoint.weights.items():
        # not by torch, whose threads, if a second team of them waits beside those of training, slow it down
        if not np.isfinite(local(value).float().numpy(force=True)).all():
            raise RunError(
                f"step {checkpoint.step} is not saved, because the weight {name} is not finite: go back to the last "
                "checkpoint with a lower learning rate"
            )
