"""Training loop: trains the model of a recipe in a run folder, from the start or from the newest checkpoint.

A run's result depends on the recipe, the data and the machine, not on how often the run is interrupted.

The path from text to checkpoint, in the case of translation:

- `data.preparation.pairs` encodes the text as rows of token ids on disk; `data.batches` groups them into batches and
  pads each batch;
- `tasks.parts.sequence_to_sequence` turns a batch into tensors and computes its loss: the model is in
  `architectures.transformer`, the cross-entropy in `losses`;
- `TrainingStep.update` is the arithmetic: forward pass, backward pass, clipping, optimizer step;
- `Trainer.update` loads the batches of an update, calls `TrainingStep.update`, and then logs, saves and validates if
  these are due;
- `Checkpoints.save` in `checkpoint.checkpoints` writes the checkpoint.
"""

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from heedful.checkpoint import Checkpoint, Checkpoints, Claim, claim
from heedful.config.schema import Recipe
from heedful.distributed.reducer import Reducer, join_process_group, num_local_processes, num_processes, reducer_factory
from heedful.machine import check_precision, choose_device, choose_precision, prepare_process, wait_policy
from heedful.machine.process import preserve_rng_state
from heedful.progress import ProgressReporter, printer
from heedful.tasks import find_task
from heedful.training.callbacks import NO_CALLBACKS, CallbackError, Callbacks
from heedful.training.learning_rate import rate_line
from heedful.training.logger import Logger, RunLogger, tensorboard
from heedful.training.preflight import preflight
from heedful.training.resume import EXACT, ResumeOptions, check_same_run, put_aside_logs, put_aside_mark
from heedful.training.signals import Interruption
from heedful.training.startup_checks import check_agreement, check_processes, shared_settings
from heedful.training.trainer import Trainer
from heedful.wording import counted


class Outcome(NamedTuple):
    """Outcome of training: the number of updates, and the exit code for the signal that interrupted it (0 if none)."""

    update: int
    exit_code: int


@preserve_rng_state()
def train(
    recipe: Recipe,
    folder: Path,
    console: Console,
    data: Path | None = None,
    resume_options: ResumeOptions = EXACT,
    callbacks: Callbacks = NO_CALLBACKS,
) -> Outcome:
    """Train a model in `folder`, from the start or from its newest checkpoint, to the end or to the first signal.

    Args:
        recipe: The recipe.
        folder: The run folder.
        console: The console to print to.
        data: The folder with the prepared data, which several runs may share; None: `data` in the run folder.
        resume_options: How an interrupted run in the folder is resumed.
        callbacks: Called during training; with several processes, only on rank zero.

    Raises:
        InputError: The recipe, the data or the folder cannot be used.
        RunError: The run cannot continue, for example because the disk is full or the loss has diverged; checkpoints
            remain valid.
        CallbackError: A callback has raised an exception; the run is saved.
    """
    # Before anything is written, find what would stop the run.
    recipe = preflight(recipe)
    check_processes(recipe, num_processes(), num_local_processes())
    parallel, device = recipe.parallel, recipe.train.device
    with (
        join_process_group(parallel.timeout_minutes, device, reducer_factory(parallel, device)) as reducer,
        claim(folder) if reducer.is_rank_zero else nullcontext() as claimed,
    ):
        # Prepare the data, build the model, and restore the newest checkpoint.
        prepare_process(recipe.train.threads, num_local_processes())
        console = console if reducer.is_rank_zero else Console(quiet=True)
        trainer = open_trainer(recipe, folder, data or folder / "data", console, reducer, claimed, resume_options)
        if trainer.has_ended():
            return Outcome(trainer.state.update, 0)
        with (
            trainer.saver,
            Interruption(trainer.work) as interruption,
            closing(trainer.loader),
            open_logger(trainer) as logger,
            wait_policy(trainer.device, logger.say) as waiting,
        ):
            updates = None if recipe.train.max_minutes is not None else expected_updates(trainer)
            logger.say(rate_line(trainer.recipe, updates))

            # The loop itself: updates until a limit of the recipe is reached, or any process receives a signal.
            try:
                trainer.begin(logger, callbacks)
                while not trainer.is_finished() and not interruption.of_any(reducer):
                    trainer.update()
                    waiting.adapt()
            except CallbackError as failure:
                trainer.save()
                name, update = type(failure.error).__name__, trainer.state.update
                logger.say(f"a callback has failed ({name}); the run was saved after update {update}")
                raise

            # An interrupted run is saved, so that it can resume; a finished one also writes its final model.
            trainer.save()
            if interruption.of_any(reducer):
                trainer.call("on_end", {})
                return Outcome(trainer.state.update, interruption.exit_code)
            if trainer.stopped_early:
                logger.say(
                    f"stopped early after update {trainer.state.update:,}: no improvement in the last "
                    f"{counted(trainer.state.worse, 'validations')} (train.patience)"
                )
            scores = trainer.finish()
            trainer.call("on_end", scores, finished=True)
            return Outcome(trainer.state.update, 0)


def open_trainer(
    recipe: Recipe,
    folder: Path,
    data: Path,
    console: Console,
    reducer: Reducer,
    claimed: Claim | None,
    resume_options: ResumeOptions,
) -> Trainer:
    """Prepare the data of a run, and create its trainer from scratch or from the newest checkpoint."""
    say = printer(console)

    # Only rank zero reads the checkpoints of the run, and broadcasts what the other processes need.
    reducer.broadcast_object(lambda: put_aside_mark(folder, say))
    checkpoints = Checkpoints(folder, recipe.train.keep_last, every=recipe.train.save_every, claimed=claimed)
    saved = None
    if reducer.is_rank_zero:
        saved, rejected = checkpoints.load_latest(resume_options.strict)
        for damaged in rejected:
            say(f"damaged checkpoint moved to {damaged.path}: {damaged.reason}")
        if saved:
            for change in check_same_run(recipe, saved, resume_options.allowed_changes):
                say(change)
        put_aside_logs(folder, saved, say)

    # What a run decided at its start stays the same when it is resumed.
    decided = reducer.broadcast_object(lambda: decided_settings(recipe, saved, say))
    recipe = replace(
        recipe,
        train=replace(recipe.train, precision=decided["precision"], freeze=tuple(decided["freeze"])),
        data=replace(recipe.data, label_mean=decided["label_mean"], label_scale=decided["label_scale"]),
        decode=replace(recipe.decode, max_extra=decided["max_extra"]),
    )

    with ProgressReporter("preparing the data", say=say):
        # Rank zero prepares the data, and the others open what it has written.
        task = reducer.rank_zero_first(lambda: find_task(recipe.task).prepare(recipe, data, say))
    if reducer.world_size > 1:
        check_agreement(reducer, {**shared_settings(task.recipe), "data": task.data.digest})
    trainer = Trainer(task, folder, checkpoints, console, reducer)
    trainer.resume(saved)
    if reducer.saves:
        # The best checkpoint may not be marked as such, because the mark was damaged, or because the run was killed
        # between a validation and marking.
        trainer.saver.try_to_mark(trainer.best())
    return trainer


def decided_settings(recipe: Recipe, saved: Checkpoint | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Decide the settings that a recipe leaves open: a new run chooses them, and a resumed run keeps them.

    Choices that a user may not expect are printed.
    """
    train, begun = recipe.train, saved.recipe if saved else recipe

    # precision = "auto" selects the precision that suits this machine. The reason is also printed if the recipe sets a
    # less suitable one. float32 suits every machine, and is not compared with anything, as that takes half a second.
    device = choose_device(train.device)
    precision = begun.train.precision if train.precision == "auto" and saved else train.precision
    if precision == "auto":
        precision, reason = choose_precision(device)
        say(f"precision: {precision} ({reason})")
    check_precision(precision, device)
    if precision == "float16" and device.type == "cpu":
        say("precision: float16, which is for GPUs and slow on a CPU")
    elif precision != "float32":
        choice = choose_precision(device)
        if precision == "float16" and choice.precision == "bfloat16":
            say(f"precision: float16, but {choice.reason}, which needs no loss scaling")
        elif precision in ("bfloat16", "autocast") and choice.precision == "float32":
            say(f"precision: {precision}, which is slow on this machine ({choice.reason})")

    # Regression labels are standardised, but a run that an older version started continues with unchanged labels.
    mean, scale = begun.data.label_mean, begun.data.label_scale
    if (mean, scale) != (recipe.data.label_mean, recipe.data.label_scale):
        say(f"the run resumes with data.label_mean = {mean} and data.label_scale = {scale}, its original values")

    # A model converted from a format without an output bias has an output bias that only suppresses some tokens.
    # This bias is frozen, so that the model can be converted back.
    frozen = begun.train.freeze
    if not saved and train.start is not None and train.lora is None:
        from heedful.training.warm_start import output_bias_to_freeze

        frozen = (*frozen, *output_bias_to_freeze(recipe))

    # The length limit of outputs follows from the training texts: a resumed run keeps its original limit.
    max_extra = recipe.decode.max_extra
    if max_extra is None and saved:
        max_extra = begun.decode.max_extra
    return {
        "precision": precision,
        "label_mean": mean,
        "label_scale": scale,
        "freeze": list(frozen),
        "max_extra": max_extra,
    }


def open_logger(trainer: Trainer) -> Logger:
    """Create the logger of a run that starts or resumes; with several processes, only rank zero logs."""
    if not trainer.reducer.is_rank_zero:
        return Logger()
    update = trainer.state.update
    board = tensorboard(trainer.folder, update) if trainer.recipe.train.tensorboard else None
    return RunLogger(trainer.folder, update, expected_updates(trainer), board, trainer.console)


def expected_updates(trainer: Trainer) -> int:
    """Return the number of updates in the whole run; with `max_epochs`, estimate it from the length of this epoch."""
    train, state = trainer.recipe.train, trainer.state
    if train.max_epochs is None:
        return train.max_updates
    before = state.update - state.batch // train.accumulate  # updates before this epoch
    rest = (train.max_epochs - state.epoch) * ceil(len(trainer.batch_indices) / train.accumulate)
    return min(train.max_updates, before + rest)
