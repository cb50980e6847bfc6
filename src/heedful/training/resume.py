"""Resuming of runs: what fits, what may change, and damaged small files, without which a run resumes all the same."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from heedful.architectures import weights
from heedful.architectures.model import check_weights
from heedful.checkpoint import Checkpoint
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.run_folder import OPTIMIZER, STATE, put_aside_damaged_mark
from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS, resumption
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.config.setting import Fixed
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.optim import check_optimizer_tensors
from heedful.storage.atomic import named_write_errors
from heedful.training.logger import LOG, TIMINGS, LogMark, has_damaged_lines, is_as_marked
from heedful.training.trainer_state import DECAYING, TrainerState

SILENCE = "output.bias"  # see `heedful.training.loop.frozen_weights`
FREEZE = str(KEYS.train.freeze)


class Resumption(NamedTuple):
    """Choices of how a run resumes."""

    strict: bool = False  # a damaged newest checkpoint is an error; otherwise the run resumes from the one before
    allowed: tuple[str, ...] = ()  # dotted keys of the recipe that may have changed


EXACTLY = Resumption()  # no setting may change that a result depends on


def check_same_run(recipe: Recipe, saved: Checkpoint, allowed: Collection[str] = ()) -> list[str]:
    """Check that a recipe and its data match the run of a checkpoint, so that the run can resume.

    Keys that are `allowed` may have changed although the rest of the run depends on them: a clause is returned for
    each that has. All others that have are listed in one InputError.
    """
    check_state(saved)
    now, then = dict(dotted(recipe_to_dict(recipe))), dict(dotted(recipe_to_dict(saved.recipe)))
    options = type(recipe.model)
    for key in allowed:
        if key not in now.keys() | then.keys():
            raise InputError(f'--allow-change {key}: a recipe has no key "{key}"; `heedful config show` lists all keys')
        if isinstance(why := resumption(key, options), Fixed):
            raise InputError(f"--allow-change {key}: a run cannot go on with another {key}, because {why.reason}")
    if SILENCE not in now[FREEZE]:  # a run that begins with a converted model adds it
        then[FREEZE] = [name for name in then[FREEZE] if name != SILENCE]

    # Every other key changes the numbers of the rest of the run: it would be neither the old run nor a new one.
    changes = {
        key: f"{key} is {now.get(key)!r}, the run was begun with {then.get(key)!r}"
        for key in sorted(now.keys() | then.keys())
        if now.get(key) != then.get(key) and not is_free(key, recipe)
    }
    problems = {key: clause for key, clause in changes.items() if key not in allowed}
    if problems:
        accept = ""
        if not any(isinstance(resumption(key, options), Fixed) for key in problems):
            accept = f"accept what changes with {' '.join(f'--allow-change {key}' for key in sorted(problems))}, "
        raise InputError(
            f"the run cannot resume with other settings: {'; '.join(problems.values())}. "
            f"Use the old values, {accept}or begin another run with another --out"
        )
    if data_digest(recipe) != saved.state["data"]:
        raise InputError(
            "the run cannot go on: its training or validation data has changed since it was begun. "
            "Restore the files, or begin another run with another --out"
        )
    return list(changes.values())


def is_free(key: str, recipe: Recipe) -> bool:
    """True if a key may change when a run is resumed: no result of this run depends on it."""
    resume = resumption(key, type(recipe.model))
    if resume == "length":
        return recipe.optimizer.schedule not in DECAYING  # else the rate falls towards the end
    train = recipe.train
    decodes = FAMILIES[recipe.model.family].pairs and train.validate_decoding and recipe.data.valid is not None
    if resume == "free" or (key.startswith(f"{KEYS.decode}.") and not decodes):
        return True
    free = {  # in this run, though not in others
        str(KEYS.train.precision): train.precision == "auto",  # the run's own precision is taken
        str(KEYS.decode.max_extra): recipe.decode.max_extra is None,  # likewise its own limit
        # else the checkpoints of which the final model is the mean would be others
        str(KEYS.train.save_every): train.average_last == 1,
    }
    return free.get(key, False)


def check_state(saved: Checkpoint) -> TrainerState:
    """Check the values of a checkpoint's `state.json`, and return the progress of its run.

    Checksums show what the disk has changed, but not what a program wrote wrongly.
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
    """Check that weights and optimiser state of a checkpoint are complete, and of the model's shapes and types."""
    with fitting(saved, WEIGHTS):
        check_weights(model, saved.weights)
        for name, own in weights(model).items():
            if saved.weights[name].dtype != own.dtype:
                raise ValueError(f"{name} is {saved.weights[name].dtype}, the model needs {own.dtype}")
    with fitting(saved, OPTIMIZER):
        progress = check_state(saved)
        if progress.update > progress.skipped:
            check_optimizer_tensors(optimizer, model, saved.optimizer)
        count = saved.state.get("tensors", len(saved.optimizer))  # older versions did not count them
        if count != len(saved.optimizer):
            raise ValueError(f"it has {len(saved.optimizer)} tensors instead of {count}")


@contextmanager
def fitting(saved: Checkpoint, file: str) -> Iterator[None]:
    """Turn a ValueError about a file of a checkpoint into an error that names both, and the remedy."""
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the checkpoint of update {saved.step} does not fit its run ({file}: {error}): remove the folder "
            f"step-{saved.step:08d}, and the run goes on from the checkpoint before it"
        ) from error


def fix_mark(folder: Path) -> Iterator[str]:
    """Put a damaged mark of the best checkpoint aside, and yield what was done; the run marks it again."""
    if damaged := put_aside_damaged_mark(folder):
        yield f"{damaged.reason}: put aside as {damaged.folder}, and the best checkpoint is marked again"


def fix_logs(folder: Path, saved: Checkpoint | None) -> Iterator[str]:
    """Put damaged logs aside, and yield what was done; scores that the rest of the run needs are computed again.

    The checkpoint from which the run resumes, `saved`, knows how the log began. What follows is written again.
    """
    mark = saved.state.get("log") if saved else None
    # there is none where the run begins, or in a checkpoint of an older version
    if has_damaged_lines(folder / LOG) if mark is None else not is_as_marked(folder / LOG, LogMark(**mark)):
        yield put_aside(folder / LOG) + ", and the log begins anew; the model does not depend on it"
    if has_damaged_lines(folder / TIMINGS):
        yield put_aside(folder / TIMINGS) + ", and the timings begin anew"


def put_aside(path: Path) -> str:
    """Rename a damaged file, if it is still there; return a clause that says so."""
    bad = path.with_name(path.name + ".bad")
    if not path.exists():
        return f"{path} is gone"
    with named_write_errors(bad):
        path.replace(bad)
    return f"{path} is damaged: put aside as {bad}"
