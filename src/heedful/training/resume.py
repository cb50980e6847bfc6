"""Resuming runs: which settings may change, and which damaged files a run can do without."""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from heedful.architectures import weights
from heedful.architectures.model import check_weights
from heedful.checkpoint import Checkpoint
from heedful.checkpoint.checkpoints import put_aside_damaged_mark
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.save import OPTIMIZER, STATE
from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS, resume_rule
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.config.setting import Fixed
from heedful.config.unknown_keys import nearest
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.optim import check_optimizer_tensors
from heedful.storage.atomic import named_write_errors
from heedful.training.learning_rate import DECAYING
from heedful.training.logger import LOG, TIMINGS, has_damaged_lines, is_as_marked
from heedful.training.trainer_state import TrainerState
from heedful.wording import all_of, did_you_mean

MAX_SHOWN = 5  # changed settings in an error message
MAX_VALUE = 80  # characters of a value in an error message; longer values are not shown
OUTPUT_BIAS = "output.bias"  # a run that starts from a converted model may freeze it: `loop.decided_settings`


class ChangedSettings(InputError):
    """Error about a run that cannot resume because settings of its recipe have changed; `changes` lists them."""

    def __init__(self, message: str, changes: str) -> None:
        super().__init__(message)
        self.changes = changes


class ResumeOptions(NamedTuple):
    """Options for resuming: how strictly to treat damaged checkpoints, and which settings may have changed."""

    strict: bool = False  # True: a damaged newest checkpoint is an error, and the run does not resume from an older one
    allowed_changes: tuple[str, ...] = ()  # dotted keys of the recipe that may have changed


EXACT = ResumeOptions()  # no setting that affects results may change


def check_same_run(recipe: Recipe, saved: Checkpoint, allowed_changes: Collection[str] = ()) -> list[str]:
    """Check that a recipe and its data match the run of a checkpoint, so that the run can resume.

    Returns a sentence for each changed setting in `allowed_changes` that affects the rest of the run. One InputError
    reports all other changes that would affect it.
    """
    check_state(saved)
    if recipe.task != saved.recipe.task:
        difference = changed(str(KEYS.task), recipe.task, saved.recipe.task)
        raise ChangedSettings(
            f"the folder contains a run of another task: {difference}. Start a new run with a different --out",
            difference,
        )
    now, begun = dict(dotted(recipe_to_dict(recipe))), dict(dotted(recipe_to_dict(saved.recipe)))
    options = type(recipe.model)
    for key in allowed_changes:
        if key not in now.keys() | begun.keys():
            near = nearest(key, options)
            hint = did_you_mean(near) if near else "`heedful config show RECIPE` lists all keys"
            raise InputError(f'--allow-change {key}: a recipe has no key "{key}"; {hint}')
        if isinstance(rule := resume_rule(key, options), Fixed):
            raise InputError(f"--allow-change {key}: a run cannot resume with a different {key}, because {rule.reason}")
    freeze = str(KEYS.train.freeze)
    if OUTPUT_BIAS not in now[freeze]:  # the run added it at its start
        begun[freeze] = [name for name in begun[freeze] if name != OUTPUT_BIAS]
    also = str(KEYS.train) + ".lora.also"  # the run has added the weights that its start model lacks
    if set(now.get(also, ())) <= set(begun.get(also, ())):
        begun[also] = now.get(also)

    # With a different value of any other key, the resumed run would be neither the old run nor a new one.
    changes = {
        key: changed(key, now.get(key), begun.get(key))
        for key in sorted(now.keys() | begun.keys())
        if now.get(key) != begun.get(key) and not may_change(key, recipe)
    }
    problems = {key: clause for key, clause in changes.items() if key not in allowed_changes}
    if problems:
        fixed = sorted(key for key in problems if isinstance(resume_rule(key, options), Fixed))
        free = sorted(problems.keys() - fixed)
        # `heedful config check`, which makes the same check, does not have the option.
        accept = f"heedful train ... {' '.join(f'--allow-change {key}' for key in free)}"
        values, these = ("values", "these changes") if len(problems) > 1 else ("value", "this change")
        remedy = f"Use the old {values}"
        if fixed and free:
            values = "values" if len(fixed) > 1 else "value"
            kept = f"Keep the old {values} of {all_of(fixed)}, which cannot change"
            remedy = f"{kept}; {all_of(free)} may change: {accept}. Or"
        elif free:
            remedy += f"; or accept {these}: {accept}. Or"
        else:
            remedy += ", or"
        shown = list(problems.values())[:MAX_SHOWN]
        more = [f"and {len(problems) - MAX_SHOWN} more"] * (len(problems) > MAX_SHOWN)
        listed = "; ".join([*shown, *more])
        message = (
            f"the run cannot resume with different settings: {listed}. {remedy} start a new run with a different --out"
        )
        if recipe.train.max_updates is not None and saved.step >= recipe.train.max_updates:
            message = (
                f"the run finished at update {saved.step:,}, with different settings: {listed}. "
                "Start a new run with a different --out; or, to train this one further, use its old settings with a "
                "larger train.max_updates: heedful train ... --allow-change train.max_updates"
            )
        raise ChangedSettings(message, listed)
    if data_digest(recipe) != saved.state["data"]:
        raise InputError(
            "the run cannot resume: its training or validation data has changed since it was started. "
            "Restore the files, or start a new run with a different --out"
        )
    return list(changes.values())


def changed(key: str, now: object, begun: object) -> str:
    current, old = (
        None if value is None else json.dumps(value, ensure_ascii=False) for value in (now, begun)
    )  # as TOML
    if max(len(current or ""), len(old or "")) > MAX_VALUE:
        return f"{key} has changed since the run was started"
    return f"{key} is {current or 'not set'}, but the run was started {f'with {old}' if old else 'without it'}"


def may_change(key: str, recipe: Recipe) -> bool:
    """Return True if a resumed run may change the value of a key, because no result of this run depends on it."""
    rule, train = resume_rule(key, type(recipe.model)), recipe.train
    if rule == "length":
        return recipe.optimizer.schedule not in DECAYING  # decaying schedules end with the run
    validation_decodes = (
        FAMILIES[recipe.model.family].pairs and train.validate_decoding and recipe.data.valid is not None
    )
    if rule == "free" or (key.startswith(f"{KEYS.decode}.") and not validation_decodes):
        return True
    if key == str(KEYS.train.precision):
        return train.precision == "auto"  # the run keeps its own precision
    if key == str(KEYS.decode.max_extra):
        return recipe.decode.max_extra is None  # the run keeps its limit
    # Only a final model that is an average depends on the checkpoints at multiples of save_every.
    return key == str(KEYS.train.save_every) and train.average_last == 1


def check_state(saved: Checkpoint) -> TrainerState:
    """Check the values of a checkpoint's `state.json`, and return the progress of its run.

    Checksums reveal changes on disk, but not that a program wrote something wrong.
    """
    with errors_of_file(saved, STATE):
        for key, kind in (("progress", dict), ("data", str), ("environment", dict)):
            if not isinstance(saved.state.get(key), kind):
                raise ValueError(f"{key} is {saved.state.get(key)!r}")
        progress = TrainerState.from_json(saved.state["progress"])
        if progress.update != saved.step:
            raise ValueError(f"update is {progress.update}")
    return progress


def check_tensors(saved: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Check that the weights and optimizer state of a checkpoint are complete, with the model's shapes and types."""
    with errors_of_file(saved, WEIGHTS):
        check_weights(model, saved.weights)
        for name, own in weights(model).items():
            if saved.weights[name].dtype != own.dtype:
                raise ValueError(f"{name} is {saved.weights[name].dtype}, but the model needs {own.dtype}")
    with errors_of_file(saved, OPTIMIZER):
        progress = check_state(saved)
        # An optimizer that has skipped all updates has no state yet.
        if progress.update > progress.skipped:
            check_optimizer_tensors(optimizer, model, saved.optimizer)
        count = saved.state.get("tensors", len(saved.optimizer))  # older versions did not count them
        if count != len(saved.optimizer):
            raise ValueError(f"it has {len(saved.optimizer)} tensors instead of {count}")


@contextmanager
def errors_of_file(saved: Checkpoint, file: str) -> Iterator[None]:
    """Turn a ValueError about a file of a checkpoint into an InputError with the remedy."""
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the checkpoint of update {saved.step} does not fit its run ({file}: {error}): remove the folder "
            f"step-{saved.step:08d}, and the run resumes from the previous checkpoint"
        ) from error


def put_aside_mark(folder: Path, say: Callable[[str], None]) -> None:
    """Put aside the file that marks the best checkpoint if it is damaged, and report this; the run writes it again."""
    if damaged := put_aside_damaged_mark(folder):
        say(f"{damaged.reason}: moved to {damaged.path}, and the best checkpoint is marked again")


def put_aside_logs(folder: Path, saved: Checkpoint | None, say: Callable[[str], None]) -> None:
    """Put aside damaged logs, and report them.

    The checkpoint from which the run resumes, `saved`, has a checksum of the log up to that point; damage after it does
    not matter, because the rest of the log is written again. Scores that the run needs from a lost log are recomputed.
    """
    mark = saved.state.get("log") if saved else None
    # There is no mark if the run is just starting, or if its checkpoint is from an older version.
    is_damaged = has_damaged_lines(folder / LOG) if mark is None else not is_as_marked(folder / LOG, mark)
    for name, damage, consequence in (
        (LOG, is_damaged, "the log starts again; the model does not depend on it"),
        (TIMINGS, has_damaged_lines(folder / TIMINGS), "the timings start again"),
    ):
        if not damage:
            continue
        path, bad = folder / name, folder / f"{name}.bad"
        problem = f"{path} is missing"
        if path.exists():
            problem = f"{path} is damaged: moved to {bad}"
            with named_write_errors(bad):
                path.replace(bad)
        say(f"{problem}, and {consequence}")
