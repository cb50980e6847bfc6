"""Resuming of runs: checks that a checkpoint fits, and that no setting changes what the rest of a run computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from heedful.checkpoint import Checkpoint
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.run_folder import OPTIMIZER, STATE
from heedful.config.families import FAMILIES
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.data.digest import data_digest
from heedful.errors import InputError
from heedful.models import weights
from heedful.models.model import check_weights
from heedful.optim import check_optimizer_tensors
from heedful.train.trainer_state import TrainerState

FREE = {  # keys, or tables of keys, that a resumed run may change
    "name",
    "data.root",  # the digest of the data itself is compared instead
    "data.test",
    "decode.beam",  # validation decodes greedily, so that settings of beam search and its batch size are free
    "decode.penalty",
    "decode.alpha",
    "decode.n_best",
    "decode.patience",
    "decode.batch_tokens",
    "generate",
    "parallel",
    "train.max_updates",
    "train.max_epochs",
    "train.max_minutes",
    "train.patience",
    "train.save_minutes",
    "train.keep_last",
    "train.log_every",
    "train.device",
    "train.threads",
    "train.tensorboard",
}
TIMED = {"cosine", "linear"}  # schedules that depend on max_updates


def check_same_run(recipe: Recipe, saved: Checkpoint) -> None:
    """Check that a recipe and its data match the run of a checkpoint, so that the run can resume.

    Raises:
        InputError: something differs that would change the rest of the run; all such settings are listed.
    """
    check_state(saved)
    free = free_keys(recipe)
    now, then = dict(dotted(recipe_to_dict(recipe))), dict(dotted(recipe_to_dict(saved.recipe)))
    changed = [
        f"{key} is {now.get(key)!r}, the run was begun with {then.get(key)!r}"
        for key in sorted(now.keys() | then.keys())
        if now.get(key) != then.get(key) and not any(key == name or key.startswith(name + ".") for name in free)
    ]
    if changed:
        raise InputError(
            "the run cannot go on with other settings: " + "; ".join(changed) + ". "
            "Use the old values, or begin another run with another --out"
        )
    if data_digest(recipe) != saved.state["data"]:
        raise InputError(
            "the run cannot go on: its training or validation text has changed since it was begun. "
            "Restore the files, or begin another run with another --out"
        )


def free_keys(recipe: Recipe) -> set[str]:
    """List the recipe keys, or tables of keys, that may change when a run is resumed: no result depends on them."""
    timed = {"train.max_updates"} if recipe.optimizer.schedule in TIMED else set()
    decodes = FAMILIES[recipe.model.family].pairs and recipe.train.validate_decoding and recipe.data.valid
    automatic = {"train.precision"} if recipe.train.precision == "auto" else set()  # the run's own precision is taken
    return FREE - timed | automatic if decodes else FREE - timed | automatic | {"decode"}


def check_state(saved: Checkpoint) -> TrainerState:
    """Check the values of a checkpoint's `state.json`, and return the progress of its run.

    Checksums show what the disk has changed, but not what a program wrote wrongly.

    Raises:
        InputError: a value is missing or of another type.
    """
    with fitting(saved, STATE):
        for key, kind in (("progress", dict), ("data", str), ("environment", dict)):
            if not isinstance(saved.state.get(key), kind):
                raise ValueError(f"{key} is {saved.state.get(key)!r}")
        progress = TrainerState.from_json(saved.state["progress"])
        if progress.update != saved.step:
            raise ValueError(f"update is {progress.update}")
    return progress


def check_tensors(saved: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Check that weights and optimiser state of a checkpoint are complete, and of the model's shapes and types.

    Raises:
        InputError: they are not, so that the run would go on with other numbers.
    """
    with fitting(saved, WEIGHTS):
        check_weights(model, saved.weights)
        for name, own in weights(model).items():
            if saved.weights[name].dtype != own.dtype:
                raise ValueError(f"{name} is {saved.weights[name].dtype}, the model needs {own.dtype}")
    with fitting(saved, OPTIMIZER):
        progress = check_state(saved)
        if progress.update > progress.skipped:
            check_optimizer_tensors(optimizer, model, saved.optimizer)
        expected = saved.state.get("tensors", len(saved.optimizer))  # older versions did not count them
        if expected != len(saved.optimizer):
            raise ValueError(f"it has {len(saved.optimizer)} tensors instead of {expected}")


@contextmanager
def fitting(saved: Checkpoint, file: str) -> Iterator[None]:
    """Turn a ValueError about a file of a checkpoint into an error that names both, and the remedy.

    Raises:
        InputError: a ValueError was raised within the block.
    """
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the checkpoint of update {saved.step} does not fit its run ({file}: {error}): remove the folder "
            f"step-{saved.step:08d}, and the run goes on from the checkpoint before it"
        ) from error
