"""Training loop: trains a recipe in a run folder, from the start or from the newest checkpoint.

A run's result depends on recipe, data and machine, not on how often the run is interrupted.

From text to update, for translation:

- `data.preparation.pairs` encodes the text into stores, and `data.batches` plans the batches;
- `tasks.parts.sequence_to_sequence` makes tensors of them, and computes the loss of `architectures.transformer` by
  `losses`;
- `Trainer.update` reads the batches of an update, and counts, logs, saves and validates after it;
- `TrainingStep.update` is the arithmetic: forward pass, backward pass, clipping, optimiser step.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from heedful.checkpoint import Checkpoint, Checkpoints, Claim, claim
from heedful.config.schema import Recipe
from heedful.distributed import Reducer, all_processes, join_process_group, kind_of_group, local_processes
from heedful.machine import choose_device, choose_precision, prepare_process, wait_policy
from heedful.machine.process import own_random_numbers
from heedful.progress import ProgressReporter, printer
from heedful.tasks import find_task
from heedful.training.callbacks import NO_CALLBACKS, CallbackError, Callbacks
from heedful.training.logger import Logger, RunLogger, tensorboard
from heedful.training.preflight import check_agreement, check_processes, preflight, settings
from heedful.training.resume import EXACTLY, Resumption, check_same_run, fix_logs, fix_mark
from heedful.training.signals import Interruption
from heedful.training.trainer import Trainer
from heedful.training.trainer_state import rate_line


class Outcome(NamedTuple):
    """Outcome of training: the last update, and the exit code of a signal that interrupted the run, else 0."""

    update: int
    exit_code: int


@own_random_numbers()
def train(
    recipe: Recipe,
    folder: Path,
    console: Console,
    data: Path | None = None,
    resumption: Resumption = EXACTLY,
    callbacks: Callbacks = NO_CALLBACKS,
) -> Outcome:
    """Train a model in `folder`, from the start or from its newest checkpoint, to the end or to the first signal.

    Args:
        recipe: the recipe.
        folder: the folder of the run.
        console: the terminal.
        data: the folder of the prepared data, which several runs may share; None: in the folder of the run.
        resumption: how the run resumes if the folder holds an interrupted one.
        callbacks: called during training; of several processes the first one calls its own.

    Raises:
        InputError: the recipe, the data or the folder cannot be used.
        RunError: the disk is full, or the loss has diverged; checkpoints stay valid.
        CallbackError: a callback has raised an exception; the run is saved.
    """
    recipe = preflight(recipe)
    check_processes(recipe, all_processes(), local_processes())
    parallel, device = recipe.parallel, recipe.train.device
    with (
        join_process_group(parallel.timeout_minutes, device, kind_of_group(parallel, device)) as reducer,
        claim(folder) if reducer.is_rank_zero else nullcontext() as claimed,
    ):
        prepare_process(recipe.train.threads, local_processes())
        console = console if reducer.is_rank_zero else Console(quiet=True)
        trainer = open_trainer(recipe, folder, data or folder / "data", console, reducer, claimed, resumption)
        if trainer.has_ended():
            return Outcome(trainer.state.update, 0)
        with (
            trainer.saver,
            Interruption(trainer.work) as interruption,
            closing(trainer.coming),
            open_logger(trainer) as logger,
            wait_policy(trainer.device, logger.say) as waiting,
        ):
            updates = None if recipe.train.max_minutes is not None else expected_updates(trainer)
            logger.say(rate_line(trainer.recipe, updates))

            # The loop itself: updates until a limit of the recipe, or a signal to any of the processes.
            with saved_if_a_callback_fails(trainer, logger):
                trainer.callbacks = callbacks
                trainer.calls_back = reducer.broadcast_object(lambda: bool(callbacks.callbacks))
                trainer.begin(logger)
                while not trainer.is_finished() and not interruption.of_any(reducer):
                    trainer.update(logger)
                    waiting.adapt()
            trainer.save()
            if interruption.of_any(reducer):
                trainer.call("on_end", {})
                return Outcome(trainer.state.update, interruption.exit_code)
            scores = trainer.finish(logger)
            trainer.call("on_end", scores, finished=True)
            return Outcome(trainer.state.update, 0)


@contextmanager
def saved_if_a_callback_fails(trainer: Trainer, logger: Logger) -> Iterator[None]:
    """Save the run if a callback raises an exception in the block, so that it can resume."""
    try:
        yield
    except CallbackError as failed:
        trainer.save()
        update = trainer.state.update
        logger.say(f"a callback has failed ({type(failed.error).__name__}); the run is saved after update {update}")
        raise


def open_trainer(
    recipe: Recipe,
    folder: Path,
    data: Path,
    console: Console,
    reducer: Reducer,
    claimed: Claim | None,
    resumption: Resumption,
) -> Trainer:
    """Prepare the data of a run, and create its trainer from scratch or from the newest checkpoint."""
    say = printer(console)

    # Only the process of rank zero reads the folder of the run; the others get what it has found.
    reducer.broadcast_object(lambda: say_all(say, fix_mark(folder)))
    checkpoints = Checkpoints(folder, recipe.train.keep_last, every=recipe.train.save_every, claimed=claimed)
    saved = latest(checkpoints, recipe, say, resumption) if reducer.is_rank_zero else None
    if claimed:
        say_all(say, fix_logs(folder, saved))

    # What a run has found out about itself when it began stays as it is when the run resumes.
    precision = reducer.broadcast_object(lambda: precision_of(recipe, saved, console))
    mean, scale = reducer.broadcast_object(lambda: labels_of(recipe, saved, say))
    frozen = reducer.broadcast_object(lambda: list(frozen_weights(recipe, saved)))
    extra = recipe.decode.max_extra
    if extra is None:
        extra = reducer.broadcast_object(lambda: saved.recipe.decode.max_extra if saved else None)
    recipe = replace(
        recipe,
        train=replace(recipe.train, precision=precision, freeze=tuple(frozen)),
        data=replace(recipe.data, label_mean=mean, label_scale=scale),
        decode=replace(recipe.decode, max_extra=extra),
    )

    with ProgressReporter("preparing the data", say=say):
        task = reducer.rank_zero_first(lambda: find_task(recipe.task).prepare(recipe, data, say))
    if reducer.world_size > 1:
        check_agreement(reducer, {**settings(task.recipe), "data": task.data.digest})
    trainer = Trainer(task, folder, checkpoints, console, reducer)
    trainer.resume(saved)
    if reducer.saves:
        trainer.saver.try_to_mark(trainer.best())
    return trainer


def say_all(say: Callable[[str], None], sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(sentence)


def latest(
    checkpoints: Checkpoints, recipe: Recipe, say: Callable[[str], None], resumption: Resumption
) -> Checkpoint | None:
    """Load the newest intact checkpoint of a run, which must fit the recipe; None if there is none."""
    checkpoint, rejected = checkpoints.load_latest(resumption.strict)
    for damaged in rejected:
        say(f"damaged checkpoint put aside: {damaged.folder}: {damaged.reason}")
    if checkpoint:
        say_all(say, check_same_run(recipe, checkpoint, resumption.allowed))
    return checkpoint


def precision_of(recipe: Recipe, saved: Checkpoint | None, console: Console) -> str:
    """Choose the precision for `precision = "auto"`: that of the resumed run, else the faster one on this machine.

    The choice and its reason are printed, also if the precision of the recipe is the slower one.
    """
    precision, choice = recipe.train.precision, choose_precision(choose_device(recipe.train.device))
    if precision == "auto" and not saved:
        console.print(f"precision: {choice.precision} ({choice.reason})", soft_wrap=True)
        return choice.precision
    if precision == "auto" and saved:
        precision = saved.recipe.train.precision
    if precision != "float32" and choice.precision == "float32":
        console.print(f"precision: {precision}, which is slow here ({choice.reason})", soft_wrap=True)
    return precision


def labels_of(recipe: Recipe, saved: Checkpoint | None, say: Callable[[str], None]) -> list[float | None]:
    """Choose the mean and the scale that standardise the labels: those of the resumed run, else of the recipe.

    A run of an older version has learned the labels as they are; that it resumes in another way than a new run begins
    is printed.
    """
    data = (saved.recipe if saved else recipe).data
    if (data.label_mean, data.label_scale) != (recipe.data.label_mean, recipe.data.label_scale):
        then = f"data.label_mean = {data.label_mean} and data.label_scale = {data.label_scale}"
        say(f"the run resumes with the {then} with which it was begun")
    return [data.label_mean, data.label_scale]


def frozen_weights(recipe: Recipe, saved: Checkpoint | None) -> tuple[str, ...]:
    """List the weights that a run does not train: those of the resumed run, or of the recipe and of its start model.

    A converted model without an output bias has one that keeps some tokens from being said. It stays, so that the model
    can go back to the form in which it came.
    """
    if saved:
        return saved.recipe.train.freeze
    if recipe.train.start is None:
        return recipe.train.freeze
    from heedful.training.warm_start import silences

    return (*recipe.train.freeze, *silences(recipe))


def open_logger(trainer: Trainer) -> Logger:
    """Create the logger of a run that starts or resumes; of several processes the first one logs."""
    if not trainer.reducer.is_rank_zero:
        return Logger()
    update = trainer.state.update
    board = tensorboard(trainer.folder, update) if trainer.recipe.train.tensorboard else None
    return RunLogger(trainer.folder, update, expected_updates(trainer), board, trainer.console)


def expected_updates(trainer: Trainer) -> int:
    """Number of updates of the whole run; with `max_epochs` an estimate, as if all epochs were like this one."""
    train, state = trainer.recipe.train, trainer.state
    if train.max_epochs is None:
        return train.max_updates
    before = state.update - state.batch // train.accumulate  # updates before this epoch
    rest = (train.max_epochs - state.epoch) * ceil(len(trainer.batches) / train.accumulate)
    return min(train.max_updates, before + rest)
