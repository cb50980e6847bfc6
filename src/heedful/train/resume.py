"""Resuming of runs: checks that a checkpoint fits, and that no setting changes what the rest of a run computes."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from heedful.checkpoint import Checkpoint
from heedful.checkpoint.checkpoint import OPTIMIZER, STATE
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.config.families import FAMILIES
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.data.preparation.digest import data_digest
from heedful.errors import InputError
from heedful.models import weights
from heedful.models.model import check_weights
from heedful.optim import check_optimizer_tensors
from heedful.train.run_length import DECAYING
from heedful.train.trainer_state import TrainerState

FREE = {  # keys, or tables of keys, that a resumed run may change
    "name",
    "data.root",  # the digest of the data itself is compared instead
    "tokenizer.path",  # likewise
    "data.test",
    "data.label_mean",  # those of the run are taken
    "data.label_scale",
    "data.words",  # texts are cut by them, and the words of tagged data are not
    "decode.beam",  # validation decodes greedily, so that settings of beam search and its batch size are free
    "decode.penalty",
    "decode.alpha",
    "decode.n_best",
    "decode.patience",
    "decode.batch_tokens",
    "generate",
    "model.source_vectors",  # a run begins with them, and goes on from its own weights
    "model.target_vectors",
    "parallel",
    "train.max_updates",
    "train.max_epochs",
    "train.max_minutes",
    "train.patience",
    "train.save_minutes",
    "train.keep_last",
    "train.log_every",
    "train.validate_every",
    "train.device",
    "train.threads",
    "train.workers",
    "train.activation_checkpointing",
    "train.tensorboard",
}
LIMITS = {"train.max_updates", "train.max_epochs", "train.max_minutes"}  # the end, towards which some rates fall
SILENCE = "output.bias"  # see `heedful.train.loop.frozen_weights`
ORDER = "the place in the data where the run stands would be another"
BEST = "the best score so far would be of another kind"
FIXED = {  # keys, or tables of keys, that no run can go on without, and why
    "task": "the model would learn something else",
    "model": "the weights that are learned so far are of the old model",
    "optimizer.name": "the state that is kept is that of the old optimiser",
    "tokenizer": "the ids of the tokens would be others",
    "data": ORDER,
    "masking": ORDER,
    "train.batch_tokens": ORDER,
    "train.seed": ORDER,
    "train.freeze": "the state that is kept is that of the weights which were trained",
    "train.best": BEST,
    "train.validate_decoding": BEST,
    "evaluate.metrics": BEST,
    "train.save_every": "the checkpoints that the end may average were chosen by it",
}


@dataclass(frozen=True)
class Resumption:
    """Choices of how a run resumes.

    Attributes:
        strict: a damaged newest checkpoint is an error; otherwise the run goes on from the one before.
        allowed: dotted keys of the recipe that may have changed.
    """

    strict: bool = False
    allowed: tuple[str, ...] = ()


EXACTLY = Resumption()  # no setting may change that a result depends on


def check_same_run(recipe: Recipe, saved: Checkpoint, allowed: Collection[str] = ()) -> list[str]:
    """Check that a recipe and its data match the run of a checkpoint, so that the run can resume.

    Args:
        recipe: the recipe.
        saved: the checkpoint.
        allowed: dotted keys that may have changed although the rest of the run depends on them.

    Returns:
        A clause for each of these that has changed.

    Raises:
        InputError: something else differs that would change the rest of the run; all such settings are listed. Or
            a key cannot be allowed to change.
    """
    check_state(saved)
    free = free_keys(recipe)
    now, then = dict(dotted(recipe_to_dict(recipe))), dict(dotted(recipe_to_dict(saved.recipe)))
    check_allowed(allowed, now.keys() | then.keys())
    if SILENCE not in now["train.freeze"]:  # a run that begins with a converted model adds it
        then["train.freeze"] = [name for name in then["train.freeze"] if name != SILENCE]
    changed = {
        key: f"{key} is {now.get(key)!r}, the run was begun with {then.get(key)!r}"
        for key in sorted(now.keys() | then.keys())
        if now.get(key) != then.get(key) and not within(key, free)
    }
    if refused := [clause for key, clause in changed.items() if key not in allowed]:
        raise InputError(
            "the run cannot resume with other settings: " + "; ".join(refused) + ". "
            f"Use the old values, {allow_all(changed.keys() - set(allowed))}or begin another run with another --out"
        )
    if data_digest(recipe) != saved.state["data"]:
        raise InputError(
            "the run cannot go on: its training or validation data has changed since it was begun. "
            "Restore the files, or begin another run with another --out"
        )
    return list(changed.values())


def allow_all(keys: Collection[str]) -> str:
    """Format the options that allow all keys to change at once; empty if a run cannot resume with one of them."""
    if any(fixed_reason(key) for key in keys):
        return ""
    return f"accept what changes with {' '.join(f'--allow-change {key}' for key in sorted(keys))}, "


def fixed_reason(key: str) -> str | None:
    """Return why a run cannot resume with another value of a key; None if it can."""
    reasons = (reason for name, reason in FIXED.items() if within(key, {name}) and "dropout" not in key)
    return next(reasons, None)


def check_allowed(allowed: Collection[str], keys: Collection[str]) -> None:
    """Check that a run could go on with another value of each of these keys.

    Raises:
        InputError: a recipe has no such key, or no run can go on with another value.
    """
    for key in allowed:
        if key not in keys:
            raise InputError(f'--allow-change {key}: a recipe has no key "{key}"; `heedful config show` lists all keys')
        if reason := fixed_reason(key):
            raise InputError(f"--allow-change {key}: a run cannot go on with another {key}, because {reason}")


def within(key: str, names: Collection[str]) -> bool:
    """True if a dotted key is one of some keys, or in one of some tables of keys."""
    return any(key == name or key.startswith(name + ".") for name in names)


def free_keys(recipe: Recipe) -> set[str]:
    """List the recipe keys, or tables of keys, that may change when a run is resumed: no result depends on them."""
    timed = LIMITS if recipe.optimizer.schedule in DECAYING else set()
    decodes = FAMILIES[recipe.model.family].pairs and recipe.train.validate_decoding and recipe.data.valid
    more = {"train.precision"} if recipe.train.precision == "auto" else set()  # the run's own precision is taken
    if recipe.decode.max_extra is None:
        more.add("decode.max_extra")  # likewise its own limit
    if recipe.train.average_last == 1:  # else the checkpoints of which the final model is the mean would be others
        more.add("train.save_every")
    if not decodes:
        more.add("decode")
    return FREE - timed | more


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
