"""Trainer of a run: model, optimiser, batches and counters; a run can resume from its last checkpoint.

`update` is the heart: read batches, update the weights, count, and then log, save and validate where that is due. The
arithmetic of an update is in `training_step`, the order of the run in `loop`.

A batch is a function of its epoch and the numbers of its examples, so that neither workers that read ahead nor an
interruption change a result.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from heedful.architectures import Model, load_weights, weights
from heedful.checkpoint import Best, Checkpoint, Checkpoints, average, store_of, write_model
from heedful.config.rules import remarks
from heedful.config.user_code import errors_of_own_code
from heedful.distributed import SINGLE_PROCESS, Reducer, local_processes
from heedful.errors import DivergedError, RunError
from heedful.machine import choose_device, environment
from heedful.machine.process import usable_cores
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.progress import printer
from heedful.random_numbers import seed_of
from heedful.tasks.dataset import Dataset
from heedful.tasks.task import Batch, Evaluation, Mean, Results, Scores, Task, best_score, score_names
from heedful.training.callbacks import NO_CALLBACKS, CallbackError, TrainingEvent
from heedful.training.checkpointing import (
    AverageCandidate,
    CheckpointSaver,
    Updates,
    choice_line,
    choose,
    ending_line,
    lost_line,
    updates_to_average,
)
from heedful.training.improvement import WarningSigns, best_of, note_validation, silence_line
from heedful.training.logger import LOG, Logger, flushed_mark, is_written, logged_scores, result
from heedful.training.preflight import (
    check_agreement,
    check_model_fits,
    checksum,
    memory_errors,
    try_largest_batch,
    whole_epoch_line,
)
from heedful.training.resume import check_tensors
from heedful.training.signals import Work
from heedful.training.trainer_state import LogWindow, TrainerState, last_update, note_time
from heedful.training.training_step import TrainingStep, Update

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

MAX_SKIPPED = 10  # updates in a row without a finite gradient after which a run stops with an error


class Trainer:
    """Trainer of one run: updates the model, validates, saves checkpoints and chooses the final model.

    Args:
        task: The task with its data.
        folder: The folder of the run.
        checkpoints: The saved checkpoints of the run.
        console: The terminal.
        reducer: Shares the batches of each update among the processes of the run, and joins what they compute.
    """

    def __init__(
        self,
        task: Task,
        folder: Path,
        checkpoints: Checkpoints,
        console: Console,
        reducer: Reducer = SINGLE_PROCESS,
    ) -> None:
        self.task = task
        self.reducer = reducer
        self.recipe = recipe = task.recipe
        self.best_name = best_score(type(task), recipe)
        self.folder = folder
        self.console = console
        self.warn: Callable[[str], object] = printer(console)
        self.device = choose_device(recipe.train.device)

        # The model begins with random weights of the seed; word vectors and start models then replace some of them.
        torch.manual_seed(seed_of(recipe.train.seed))
        check_model_fits(recipe, lambda: task.build(recipe, task.tokenizers), self.device)
        self.model = self.build()
        if recipe.model.source_vectors is not None or recipe.model.target_vectors is not None:
            from heedful.architectures.word_vectors import place_vectors

            place_vectors(self.model, recipe, task.tokenizers, self.warn)
        self.begins = ""  # a line about the weights of a warm start
        if recipe.train.start is not None or recipe.train.start_decoder is not None:
            from heedful.training.warm_start import copy_start_weights, start_line

            fresh = copy_start_weights(recipe, self.model, task.tokenizers, printer(console))
            self.begins = start_line(recipe, self.model, fresh)
        if recipe.train.freeze:
            from heedful.training.warm_start import freeze

            freeze(self.model, recipe)
        if reducer.world_size > 1:
            # replicas that begin with other weights would train, but worse, and without an error
            check_agreement(reducer, {"kind of device": self.device.type, "weights": checksum(self.model)})

        self.training_step = TrainingStep(self.model, task.loss, recipe, reducer)
        self.checkpoints = checkpoints
        self.saver = CheckpointSaver(store_of(checkpoints, reducer), recipe.train, self.warn_not_saved)
        self.state = TrainerState()
        self.plan = lru_cache(maxsize=2)(task.data.epoch)
        self.saved_at = time.monotonic()
        self.signs = WarningSigns(recipe, self.state.watch)
        self.callbacks = NO_CALLBACKS
        self.calls_back = False  # as the first process does
        self.work = Work()

    def build(self) -> Model:
        """Build a new model on the device of this process."""
        return self.task.build(self.recipe, self.task.tokenizers).to(self.device)

    def resume(self, saved: Checkpoint | None) -> None:
        """Resume the run from one of its checkpoints: restore weights, optimiser state and counters; write nothing.

        Args:
            saved: the checkpoint in the first process, from which all others get it; None: the run begins.
        """
        if saved:
            check_tensors(saved, self.model, self.training_step.optimizer)
        state = self.reducer.broadcast_object(lambda: saved and saved.state)
        if state is None:
            if self.begins:
                printer(self.console)(self.begins)
            return

        load_weights(self.model, self.reducer.broadcast_tensors(saved.weights if saved else {}))
        optimizer = self.reducer.broadcast_tensors(saved.optimizer if saved else {})
        load_optimizer_tensors(self.training_step.optimizer, self.model, optimizer)
        self.state = TrainerState.from_json(state["progress"])
        self.signs = WarningSigns(self.recipe, self.state.watch)

        # A run that was killed after the validation of this update has its scores in the log, but not in a checkpoint.
        if self.validation_is_due() and (logged := self.logged(self.state.update)):
            note_validation(self.state, logged, self.best_name)
            self.state.remarks += self.signs_of(logged, None)  # which were made before the run was interrupted
        if self.has_ended():
            printer(self.console)(ending_line(self.reducer.broadcast_object(lambda: result(self.folder))))
            return
        self.console.print(f"going on after update {self.state.update}")
        if state["environment"] != environment(self.device):
            self.console.print("the machine or torch differs from the last time: exact to rounding only")

    def begin(self, logger: Logger) -> None:
        """Begin training: print remarks on the recipe, and try whether the largest batch fits into memory.

        A run that was interrupted makes the validation that it has missed instead.
        """

        def remark(sentence: str) -> None:
            self.remark(sentence, logger)

        self.warn = remark  # each remark once, however many validations make it
        for sentence in (*remarks(self.recipe), *self.task.data.remarks()):
            logger.say(sentence)
        smoothing = self.recipe.train.label_smoothing
        if smoothing and "perplexity" in score_names(type(self.task), self.recipe):
            logger.say(f"every loss includes train.label_smoothing = {smoothing}; perplexity is without it")
        if line := whole_epoch_line(self.recipe.train, self.batches):
            logger.say(line)
        if self.state.update == 0:
            with errors_of_own_code(self.recipe, "it cannot compute a batch"), self.abandonable(self.state):
                try_largest_batch(self.training_step, self.task.data, self.batches, self.device)
        elif self.validation_is_due():
            self.validate(logger)

    def remark(self, sentence: str, logger: Logger) -> None:
        """Make a remark unless this run has made it before, in this process or before it was resumed."""
        if sentence not in self.state.remarks:
            self.state.remarks.append(sentence)
            logger.say(sentence)

    def has_ended(self) -> bool:
        """True if the run is finished and its final model is written."""
        return self.is_finished() and self.reducer.broadcast_object(lambda: is_written(self.folder, self.state.update))

    def is_finished(self) -> bool:
        """True if the recipe asks for no more updates: by its limits or early stopping."""
        train, state = self.recipe.train, self.state
        return (
            state.update >= train.max_updates
            or (train.max_epochs is not None and state.epoch >= train.max_epochs)
            or (train.max_minutes is not None and state.seconds >= 60 * train.max_minutes)
            or (train.patience is not None and state.worse >= train.patience)
        )

    def update(self, logger: Logger) -> None:
        """Perform one training update, and whatever is due after it: logging, saving a checkpoint, validation."""
        begin = time.perf_counter()
        update = self.compute()
        own_seconds = time.perf_counter() - begin

        # All processes decide by the clock of the first one, or they would not save at the same update.
        seconds, minutes = self.reducer.broadcast_object(lambda: [own_seconds, (time.monotonic() - self.saved_at) / 60])
        self.state.seconds += seconds
        self.count(update, logger)
        note_time(self.state, self.recipe.train)
        self.call("on_update", update)
        self.saver.report()

        # Saving comes before validation: whatever may happen in a validation, no update is lost.
        validates = self.validation_is_due()
        if validates or self.save_is_due(minutes):
            self.saved_at = time.monotonic()
            if self.reducer.saves:
                self.saver.begin(self.checkpoint(self.state), self.best())
        if validates:
            self.validate(logger)

    def compute(self) -> Update:
        """Read the batches of the next update, and update the weights."""
        start, number, before = self.state.batch, self.state.update + 1, replace(self.state)

        def what() -> str:
            sizes = [str(len(ids)) for ids in self.batches[start : self.state.batch]]
            return f"update {number}, with batches of {' and '.join(sizes)} examples"

        self.task.data.check_unchanged()
        with memory_errors(self.recipe.train, what):
            batches = self.next_batches()
            last = last_update(self.recipe.train, self.state, len(self.batches))
            passes = self.abandonable(before)
            update = self.training_step.update(batches, number, self.state.batch - start, last, passes)
        self.task.data.check_unchanged()  # an update from other data is not counted, and so never saved
        return update

    def next_batches(self) -> list[Batch]:
        """Read this process's batches of the next update (gradient accumulation); an epoch's last may have fewer."""
        coming, start = self.coming, self.state.batch
        ids = self.batches[start : start + self.recipe.train.accumulate]
        self.state.batch += len(ids)
        return [next(coming) for _ in self.reducer.shard(self.reducer.pad_to_world_size(ids))]

    @property
    def batches(self) -> Sequence[np.ndarray]:
        return self.plan(self.state.epoch)

    @cached_property
    def coming(self) -> Generator[Batch]:
        here = (self.state.epoch, self.state.batch)
        return read(self.task.data, planned(self.plan, self.reducer, self.recipe.train.accumulate, *here), self.device)

    def abandonable(self, state: TrainerState) -> AbstractContextManager[None]:
        """Context manager of work that changes no weight, which a signal may abandon: then `state` is saved.

        Of several processes, none can save alone, and all finish their work.
        """

        def save() -> None:
            self.saver.save(self.checkpoint(state), best_of(state, self.best_name))

        return self.work.abandonable(save) if self.reducer.world_size == 1 else nullcontext()

    def count(self, update: Update, logger: Logger) -> None:
        """Count a finished update in the state of the run, and write to the log if a record is due.

        Raises:
            DivergedError: too many updates in a row had no finite gradient.
        """
        state, window = self.state, self.state.window
        state.update += 1
        state.tokens += update.tokens
        if state.batch == len(self.batches):
            state.epoch, state.batch = state.epoch + 1, 0
        state.skipped += not update.finite
        state.skipped_in_a_row = 0 if update.finite else state.skipped_in_a_row + 1
        replay = f"`heedful replay {self.folder} {state.update}` shows where it begins"
        if state.skipped_in_a_row == MAX_SKIPPED:
            raise DivergedError(
                f"no finite gradient in {MAX_SKIPPED} updates up to {state.update}: the run has diverged; "
                "begin another with a lower optimizer.lr, a longer optimizer.warmup or optimizer.clip_norm = 1.0; "
                f"{replay}"
            )
        if update.finite:
            window.add(update.losses, update.nlls, update.counts)
            loss = sum(total / max(1, count) for total, count in zip(update.losses, update.counts, strict=True))
            if line := self.signs.after_update(loss, update.norm):
                self.remark(line, logger)
        else:
            logger.say(f"update {state.update} has no finite gradient, and leaves the weights as they are; {replay}")
        minutes = self.recipe.train.max_minutes
        logger.advance(update.tokens, inf if minutes is None else 60 * minutes - state.seconds)
        if state.update % self.recipe.train.log_every == 0:
            summary = self.task.summary(window.means()) if window.counts else {}
            logger.record(state.update, {**summary, "lr": update.lr, "norm": update.norm}, state.seconds)
            state.window = LogWindow()

    def validation_is_due(self) -> bool:
        state = self.state
        return state.update % self.recipe.train.validate_every == 0 and state.validated < state.update

    def save_is_due(self, minutes: float) -> bool:
        return self.state.update % self.recipe.train.save_every == 0 or minutes > self.recipe.train.save_minutes

    def validate(self, logger: Logger) -> None:
        """Score the model on the validation set once its checkpoint is written, log the scores, and update the best."""
        self.saver.settle()
        with self.abandonable(self.state):
            results = self.evaluated()
        scores = results and results.scores
        if scores is not None:
            logger.record_validation(self.state.update, scores)
        note_validation(self.state, scores, self.best_name)
        if results is not None and scores is not None:
            if self.reducer.saves:
                self.saver.try_to_mark(self.best())
            self.call("on_validation", scores)
            for line in self.signs_of(scores, results.outcomes.classes if results.outcomes else None):
                self.warn(line)
        logger.restart_clock()

    @torch.no_grad()
    def evaluated(self) -> Results | None:
        """Evaluate the float32 weights on the validation set; None without a validation set."""
        model = self.model
        if self.reducer.mesh is not None:
            from heedful.training.sharding import whole_model

            model = whole_model(model, self.build)
        self.task.data.check_unchanged()
        with errors_of_own_code(self.recipe, "it cannot be validated"):
            results = self.task.evaluate(model.eval(), Evaluation(self.reducer, warn=self.warn))
        self.task.data.check_unchanged()
        if results is None:
            return None
        return replace(results, scores=self.reducer.broadcast_object(lambda: results.scores))

    def signs_of(self, scores: Scores, classes: "ClassReport | None") -> list[str]:
        silence = silence_line(self.state, scores, self.best_name)
        return [*([silence] if silence else []), *self.signs.after_validation(scores, classes)]

    def best(self) -> Best | None:
        """The best update so far with its score; None before the first validation."""
        return best_of(self.state, self.best_name)

    def call(self, method: str, what: Update | Scores, *, finished: bool = False) -> None:
        """Call a method of the callbacks, in the first process, after an update, after a validation or at the end.

        Raises:
            CallbackError: a callback has raised an exception, or one of the first process has.
        """
        if not self.calls_back:
            return
        failures: list[CallbackError] = []

        def event() -> TrainingEvent:
            if isinstance(what, Update):
                means = [Mean.of(*term) for term in zip(what.losses, what.nlls, what.counts, strict=True)]
                scores = {**self.task.summary(means), "lr": what.lr, "norm": what.norm}
            else:
                scores = dict(what)
            return TrainingEvent(self.state.update, scores, self.model, self.folder, finished)

        def attempt() -> str | None:
            try:
                self.callbacks.call(method, event)
            except CallbackError as failed:
                failures.append(failed)
                return f"{type(failed.error).__name__}: {failed.error}"
            return None

        reason = self.reducer.broadcast_object(attempt)
        if failures:
            raise failures[0]
        if reason is not None:
            raise CallbackError(RunError(f"a callback of the first process has failed ({reason}); the run is saved"))

    def save(self) -> None:
        """Save a checkpoint of the current state, after earlier ones that are being written or wait in memory."""
        if self.reducer.saves:
            self.saver.save(self.checkpoint(self.state), self.best())

    def warn_not_saved(self, error: RunError) -> None:
        """Print the error of a save during training, which continues: a full disk does not end a run."""
        printer(self.console)(f"NOT SAVED: {error}; the checkpoint waits in memory for the next save")

    def checkpoint(self, state: TrainerState) -> Checkpoint:
        """Make a checkpoint of a state of the current weights, with the tensors themselves, after flushing the log."""
        mark = flushed_mark(self.folder / LOG)
        optimizer = optimizer_tensors(self.training_step.optimizer, self.model)
        return Checkpoint(
            step=state.update,
            recipe=self.recipe,
            tokenizers=self.task.tokenizers,
            weights=weights(self.model),
            optimizer=optimizer,
            state={
                "progress": state.to_json(),
                "data": self.task.data.digest,
                "environment": environment(self.device),
                "log": mark and mark._asdict(),
                "tensors": len(optimizer),
            },
        )

    def finish(self, logger: Logger) -> Scores:
        """Choose the final model, write it to `folder / "model"`, and its scores to `folder / "result.json"`.

        Raises:
            RunError: writing failed; or the model is written, but might differ if no checkpoint were lost.
        """
        # Candidates are the mean of the last checkpoints, the best one and the last one, as far as they are intact.
        end, best = self.state.update, self.best()
        choices = {updates_to_average(self.recipe, end), (best.step if best else end,), (end,)}
        damaged = set(self.reducer.broadcast_object(lambda: list(self.checkpoints.lost(chain(*choices)))))
        intact = {tuple(update for update in updates if update not in damaged) for updates in choices} - {()}
        candidates = [
            AverageCandidate(each, self.scores_of(each), [*map(self.logged, each)]) for each in sorted(intact)
        ]
        final = choose(candidates, self.best_name, self.state.tie)

        if self.signs.watch.alike:  # a sign that the last validation alone shows
            self.warn(self.signs.watch.alike)
        if self.reducer.is_rank_zero:
            self.checkpoints.check_claim()
            mean = self.mean(final.updates)
            write_model(self.folder / "model", self.recipe, self.task.tokenizers, mean, update=end)
        logger.say(choice_line(final, candidates, self.best_name))
        if damaged:
            raise RunError(lost_line(self.folder / "model", damaged, best))
        self.reducer.broadcast_object(lambda: logger.conclude(end, final.scores or {}))
        return final.scores or {}

    def mean(self, updates: Updates) -> dict[str, Tensor]:
        return average([self.checkpoints.path(update) for update in updates])

    def scores_of(self, updates: Updates) -> Scores | None:
        """Score the mean of saved checkpoints on the validation set; for a single one, the log may have the scores."""
        if len(updates) == 1 and (logged := self.logged(updates[0])):
            return logged
        mean = self.mean(updates) if self.reducer.is_rank_zero else {}
        load_weights(self.model, self.reducer.broadcast_tensors(mean))
        results = self.evaluated()
        return results and results.scores

    def logged(self, update: int) -> Scores | None:
        """Scores that the log of the run has for an update; None if it has none."""
        return self.reducer.broadcast_object(lambda: logged_scores(self.folder, update))


Planned = tuple[int, np.ndarray]  # a batch that is not read yet: its epoch, and the numbers of its examples


def planned(
    plan: Callable[[int], Sequence[np.ndarray]], reducer: Reducer, accumulate: int, epoch: int, start: int
) -> Iterator[Planned]:
    """Iterate over the batches of this process, from batch `start` of an epoch on and through all later ones, for ever.

    `plan` lists the batches of an epoch, of which each update takes `accumulate` over all processes.
    """
    while True:
        batches = plan(epoch)
        for place in range(start, len(batches), accumulate):
            for ids in reducer.shard(reducer.pad_to_world_size(batches[place : place + accumulate])):
                yield epoch, ids
        epoch, start = epoch + 1, 0


class BatchReader:
    """Function that reads a planned batch of a task to a device; it can be sent to another process."""

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.data = data
        self.device = device

    def __call__(self, batch: Planned) -> Batch:
        epoch, ids = batch
        return self.data.batch(ids, epoch, self.device)


def read(data: Dataset, batches: Iterable[Planned], device: torch.device) -> Generator[Batch]:
    """Read planned batches one after another, by workers or right here."""
    if count := number_of_workers(data, device):
        from heedful.workers import Workers

        with closing(Workers(BatchReader(data, torch.device("cpu")), count)) as workers:
            yield from (moved(batch, device) for batch in workers.map(batches))
    else:
        yield from map(BatchReader(data, device), batches)


def number_of_workers(data: Dataset, device: torch.device) -> int:
    """Number of workers of this process: what the recipe says, or all cores but one where files are read for a GPU.

    Where processes are not copied, a recipe has to say so: a script that trains is run once more by each new process.
    """
    workers = data.recipe.train.workers
    if workers == 0 or (workers is None and not (device.type == "cuda" and data.reads_files)):
        return 0
    from heedful.workers import can_have_workers, copies_processes

    if not can_have_workers():
        return 0
    if workers is not None:
        return workers
    return max(0, usable_cores() // local_processes() - 1) if copies_processes() else 0


def moved(value: Any, device: torch.device) -> Any:
    """Copy all tensors of a batch to a device: those of its fields, and of tuples and dataclasses in them."""
    if isinstance(value, Tensor):
        return value.to(device, copy=True)  # shared memory and its descriptor are free again
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: moved(getattr(value, field.name), device) for field in fields(value)})
    if isinstance(value, tuple):
        parts = [moved(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
