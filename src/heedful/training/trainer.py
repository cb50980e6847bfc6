"""Trainer of a run: its model, optimizer, batches and counters, which a checkpoint restores.

`Trainer.update` is the core: it loads the batches of one update, updates the weights and the counters, and then logs,
saves and validates if these are due. The arithmetic of an update is in `training_step`, the order of a run in `loop`.

Terms: the *indices* of a batch are the ids of its examples in the `Dataset`, like those from a PyTorch batch sampler,
but in an array; a *batch* contains the tensors made from these examples. A batch is a pure function of its indices and
its epoch, so neither prefetching workers nor an interruption changes the results.
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
from heedful.config.user_code import custom_code_errors
from heedful.distributed.reducer import SINGLE_PROCESS, Reducer, num_local_processes
from heedful.errors import DivergedError, RunError
from heedful.machine import choose_device, environment
from heedful.machine.cores import usable_cores
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.progress import printer
from heedful.random_numbers import seed_of
from heedful.tasks.dataset import Dataset
from heedful.tasks.specs import best_score_name, score_names
from heedful.tasks.task import Batch, Evaluation, Mean, Results, Scores, Task
from heedful.training.callbacks import NO_CALLBACKS, CallbackError, Callbacks, TrainingEvent
from heedful.training.checkpointing import (
    AverageCandidate,
    CheckpointSaver,
    Updates,
    choice_line,
    choose,
    lost_checkpoints_message,
    updates_to_average,
)
from heedful.training.improvement import WarningSigns, best_of, flat_score_warning, record_validation
from heedful.training.logger import LOG, Logger, final_scores, flushed_mark, format_scores, is_written, logged_scores
from heedful.training.resume import check_tensors
from heedful.training.signals import Work
from heedful.training.startup_checks import (
    check_agreement,
    check_model_fits,
    checksum,
    memory_errors,
    trained_line,
    try_largest_batch,
    whole_epoch_line,
)
from heedful.training.trainer_state import LogWindow, TrainerState, last_update, note_time
from heedful.training.training_step import TrainingStep, Update

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

MAX_SKIPPED = 10  # updates in a row without a finite gradient, after which a run ends with an error


class Trainer:
    """Trainer of one run: updates the model, validates, saves checkpoints and chooses the final model.

    Args:
        task: The task with its data.
        folder: The run folder.
        checkpoints: The saved checkpoints of the run.
        console: The console to print to.
        reducer: Shards the batches of each update among the processes of the run, and sums what they compute.
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
        self.best_name = best_score_name(task.spec, recipe)
        self.folder = folder
        self.console = console
        self.say = printer(console)
        self.logger = Logger()  # writes nothing until `begin`
        self.device = choose_device(recipe.train.device)

        # The initial weights are random, given the seed; word vectors and start models then replace some of them.
        torch.manual_seed(seed_of(recipe.train.seed))
        check_model_fits(recipe, lambda: task.build(recipe, task.tokenizers), self.device)
        # Built on the CPU, since a GPU would sample different weights from the same seed.
        self.model = task.build(recipe, task.tokenizers).to(self.device)
        if recipe.model.source_vectors is not None or recipe.model.target_vectors is not None:
            from heedful.architectures.word_vectors import place_vectors

            place_vectors(self.model, recipe, task.tokenizers, self.say)
        self.start_line = ""  # names the weights that a warm start has copied
        if recipe.train.start is not None or recipe.train.start_decoder is not None:
            from heedful.training.warm_start import add_lora, copy_start_weights, start_line

            fresh = copy_start_weights(recipe, self.model, task.tokenizers, self.say)
            self.start_line = start_line(recipe, self.model, fresh)
            # LoRA freezes the copied weights; the fresh ones, which are known only now, are trained in full.
            self.recipe = recipe = add_lora(self.model, recipe, fresh)
        if recipe.train.freeze:
            from heedful.training.warm_start import freeze

            freeze(self.model, recipe)
        if reducer.world_size > 1:
            # Replicas that start with different weights would train worse, without any error.
            check_agreement(reducer, {"kind of device": self.device.type, "weights": checksum(self.model)})

        # After freezing, because the optimizer gets only the weights that are trained.
        self.training_step = TrainingStep(self.model, task.loss, recipe, reducer)
        self.checkpoints = checkpoints
        self.saver = CheckpointSaver(store_of(checkpoints, reducer), recipe.train, self.say)
        self.state = TrainerState()
        # Near the end of an epoch, batches of the next one are prefetched, so the indices of both are kept.
        self.indices_of_epoch = lru_cache(maxsize=2)(task.data.epoch)
        self.saved_at = time.monotonic()
        self.signs = WarningSigns(recipe, self.state.watch)
        self.callbacks = NO_CALLBACKS
        self.has_callbacks = False  # on rank zero
        self.work = Work()

    def build(self) -> Model:
        """Build a new model on the device of this process, with LoRA layers if the recipe has `train.lora`."""
        model = self.task.build(self.recipe, self.task.tokenizers)
        if self.recipe.train.lora is not None:
            from heedful.nn.lora import add_updates

            add_updates(model, self.recipe.train.lora)
        return model.to(self.device)

    def resume(self, saved: Checkpoint | None) -> None:
        """Resume the run from one of its checkpoints: restore weights, optimizer state and counters; write nothing.

        Args:
            saved: The checkpoint, given on rank zero, which broadcasts it; None if the run has none yet.
        """
        if saved:
            check_tensors(saved, self.model, self.training_step.optimizer)
        state = self.reducer.broadcast_object(lambda: saved and saved.state)
        if state is None:
            for line in filter(None, (trained_line(self.model), self.start_line)):
                self.say(line)
            return

        load_weights(self.model, self.reducer.broadcast_tensors(saved.weights if saved else {}))
        optimizer = self.reducer.broadcast_tensors(saved.optimizer if saved else {})
        load_optimizer_tensors(self.training_step.optimizer, self.model, optimizer)
        self.state = TrainerState.from_json(state["progress"])
        # Only float16 has a loss scale, and a run may resume with a different precision.
        if self.training_step.loss_scale is not None and self.state.loss_scale is not None:
            self.training_step.loss_scale = self.state.loss_scale
        self.signs = WarningSigns(self.recipe, self.state.watch)

        # If the run was killed after the validation of this update, the scores are in the log, but not in a checkpoint.
        if self.validation_is_due() and (logged := self.logged(self.state.update)):
            record_validation(self.state, logged, self.best_name)
            self.state.remarks += self.validation_warnings(logged, None)  # printed before the run was interrupted
        if self.has_ended():
            scores = format_scores(self.reducer.broadcast_object(lambda: final_scores(self.folder)))
            end = f"this run ended after update {self.state.update}"
            self.say(f"{end}{scores and f': {scores}'}; nothing is left to do")
            return
        self.console.print(f"resuming after update {self.state.update}")
        if state["environment"] != environment(self.device):
            self.console.print("the machine or the torch version has changed: results are exact only up to rounding")

    def begin(self, logger: Logger, callbacks: Callbacks = NO_CALLBACKS) -> None:
        """Begin training: print remarks on the recipe, and check that the largest batch fits into memory.

        A resumed run skips the check, and performs the validation that its interruption prevented, if any.
        """
        self.logger = logger
        self.callbacks = callbacks
        self.has_callbacks = self.reducer.broadcast_object(lambda: bool(callbacks.callbacks))
        for sentence in (*remarks(self.recipe), *self.task.data.remarks()):
            self.say(sentence)
        smoothing = self.recipe.train.label_smoothing
        if smoothing and "perplexity" in score_names(self.task.spec, self.recipe):
            self.say(f"losses include label smoothing (train.label_smoothing = {smoothing}); perplexity does not")
        if line := whole_epoch_line(self.recipe.train, self.batch_indices):
            self.say(line)
        if self.state.update == 0:
            with custom_code_errors(self.recipe, "it cannot process a batch"), self.abandonable(self.state):
                try_largest_batch(self.training_step, self.task.data, self.batch_indices, self.device)
        elif self.validation_is_due():
            self.validate()

    def remark(self, sentence: str) -> None:
        """Print a sentence unless this run has printed it before, in this process or before it was resumed."""
        if sentence not in self.state.remarks:
            self.state.remarks.append(sentence)
            self.say(sentence)

    def has_ended(self) -> bool:
        """Return True if the run is finished and its final model is written."""
        return self.is_finished() and self.reducer.broadcast_object(lambda: is_written(self.folder, self.state.update))

    def is_finished(self) -> bool:
        """Return True if a limit of the recipe or early stopping ends the training."""
        train, state = self.recipe.train, self.state
        return (
            state.update >= train.max_updates
            or (train.max_epochs is not None and state.epoch >= train.max_epochs)
            or (train.max_minutes is not None and state.seconds >= 60 * train.max_minutes)
            or self.stopped_early
        )

    @property
    def stopped_early(self) -> bool:
        return self.recipe.train.patience is not None and self.state.worse >= self.recipe.train.patience

    def update(self) -> None:
        """Perform one training update, and whatever is due after it: logging, saving a checkpoint, validation."""
        # Load batches, compute their gradient, and step the optimizer.
        begin = time.perf_counter()
        update = self.compute()
        own_seconds = time.perf_counter() - begin

        # All processes use the clock of rank zero; otherwise they would not save after the same update.
        seconds, minutes = self.reducer.broadcast_object(lambda: [own_seconds, (time.monotonic() - self.saved_at) / 60])
        self.state.seconds += seconds
        self.count(update)
        note_time(self.state, self.recipe.train)
        self.call("on_update", update)
        self.saver.report()  # a checkpoint that could not be written in the background

        # Saving comes before validation, so that a crash during validation loses no update. The checkpoint is written
        # in the background while training continues.
        validates = self.validation_is_due()
        if validates or self.save_is_due(minutes):
            self.saved_at = time.monotonic()
            if self.reducer.saves:
                self.saver.begin(self.checkpoint(self.state), self.best())
        if validates:
            self.validate()

    def compute(self) -> Update:
        """Load the batches of the next update, and update the weights."""
        state, first = self.state, self.state.batch
        before = replace(state)  # saved if a signal ends the process during the passes, which change no weights

        def what() -> str:
            sizes = [str(len(indices)) for indices in self.batch_indices[first : state.batch]]
            return f"update {before.update + 1}, with batches of {' and '.join(sizes)} examples"

        self.task.data.check_unchanged()
        with memory_errors(self.recipe.train, what):
            batches = self.next_batches()
            # The learning-rate schedule ends with the run, whichever limit ends it.
            last = last_update(self.recipe.train, state, len(self.batch_indices))
            total = state.batch - first
            update = self.training_step.update(batches, state.update + 1, total, last, self.abandonable(before))
        self.task.data.check_unchanged()  # an update from changed data is not counted, and therefore never saved
        return update

    def next_batches(self) -> list[Batch]:
        """Load this process's share of an update's `train.accumulate` batches (fewer at the end of an epoch)."""
        loader, start = self.loader, self.state.batch
        indices = self.batch_indices[start : start + self.recipe.train.accumulate]
        self.state.batch += len(indices)
        return [next(loader) for _ in self.reducer.shard(self.reducer.pad_to_world_size(indices))]

    @property
    def batch_indices(self) -> Sequence[np.ndarray]:
        """The indices of all batches of the current epoch, in order."""
        return self.indices_of_epoch(self.state.epoch)

    @cached_property
    def loader(self) -> Generator[Batch]:
        """The batches of this process, from the current position through all epochs."""
        # Created at the first use, after `resume` has restored the position.
        state, accumulate = self.state, self.recipe.train.accumulate
        indices = upcoming_indices(self.indices_of_epoch, self.reducer, accumulate, state.epoch, state.batch)
        return load_batches(self.task.data, indices, self.device)

    def abandonable(self, state: TrainerState) -> AbstractContextManager[None]:
        """Return a context manager for work that changes no weights. A signal abandons the work and saves `state`.

        With several processes, none can save alone, so all of them finish their work.
        """

        def save() -> None:
            self.saver.save(self.checkpoint(state), best_of(state, self.best_name))

        return self.work.abandonable(save) if self.reducer.world_size == 1 else nullcontext()

    def count(self, update: Update) -> None:
        """Count a finished update in the state of the run, and write to the log if a record is due.

        Raises:
            DivergedError: Too many updates in a row had no finite gradient.
        """
        # These counters are all that a resumed run needs to find its position in the data.
        state, window = self.state, self.state.window
        state.update += 1
        state.tokens += update.tokens
        state.loss_scale = update.loss_scale
        if state.batch == len(self.batch_indices):
            state.epoch, state.batch = state.epoch + 1, 0

        # An update without a finite gradient has left the weights unchanged; many in a row end the run.
        state.skipped += not update.finite
        state.skipped_in_a_row = 0 if update.finite else state.skipped_in_a_row + 1
        replay = f"`heedful replay {self.folder} {state.update}` shows the first tensor that is not finite"
        if state.skipped_in_a_row == MAX_SKIPPED:
            raise DivergedError(
                f"no finite gradient in the last {MAX_SKIPPED} updates, up to {state.update}: the run has diverged; "
                "start a new one with a lower optimizer.lr, a longer optimizer.warmup or optimizer.clip_norm = 1.0; "
                f"{replay}"
            )
        if update.finite:
            window.add(update.losses, update.nlls, update.counts)
            loss = sum(total / max(1, count) for total, count in zip(update.losses, update.counts, strict=True))
            if line := self.signs.after_update(loss, update.norm):
                self.remark(line)
        else:
            self.say(f"update {state.update} has no finite gradient, and leaves the weights unchanged; {replay}")

        # Advance the progress bar; every `log_every` updates, log the mean losses since the last record.
        minutes = self.recipe.train.max_minutes
        self.logger.advance(update.tokens, inf if minutes is None else 60 * minutes - state.seconds)
        if state.update % self.recipe.train.log_every == 0:
            summary = self.task.summary(window.means()) if window.counts else {}
            scale = {"loss_scale": update.loss_scale.factor} if update.loss_scale else {}
            self.logger.record(state.update, {**summary, "lr": update.lr, "norm": update.norm, **scale}, state.seconds)
            state.window = LogWindow()

    def validation_is_due(self) -> bool:
        state = self.state
        return state.update % self.recipe.train.validate_every == 0 and state.validated < state.update

    def save_is_due(self, minutes: float) -> bool:
        return self.state.update % self.recipe.train.save_every == 0 or minutes > self.recipe.train.save_minutes

    def validate(self) -> None:
        """Evaluate the model after its checkpoint is written, log the scores, and mark the best checkpoint."""
        self.saver.settle()
        with self.abandonable(self.state):
            results = self.evaluated()
        scores = results and results.scores
        if scores is not None:
            self.logger.record_validation(self.state.update, scores)
        record_validation(self.state, scores, self.best_name)
        if results is not None and scores is not None:
            if self.reducer.saves:
                self.saver.try_to_mark(self.best())
            self.call("on_validation", scores)
            for line in self.validation_warnings(scores, results.outcomes.classes if results.outcomes else None):
                self.remark(line)
        self.logger.restart_clock()

    @torch.no_grad()
    def evaluated(self) -> Results | None:
        """Evaluate the float32 weights on the validation set; return None without one."""
        model = self.model
        if self.reducer.mesh is not None:
            from heedful.training.sharding import whole_model

            model = whole_model(model, self.build)
        self.task.data.check_unchanged()
        with custom_code_errors(self.recipe, "it cannot be validated"):
            results = self.task.evaluate(model.eval(), Evaluation(self.reducer, warn=self.remark))
        self.task.data.check_unchanged()
        if results is None:
            return None
        # Scores decide when a run stops, so all processes use those of rank zero, even if rounding differs.
        return replace(results, scores=self.reducer.broadcast_object(lambda: results.scores))

    def validation_warnings(self, scores: Scores, classes: "ClassReport | None") -> list[str]:
        """List warnings about a validation, such as that a score does not distinguish the checkpoints."""
        warning = flat_score_warning(self.state, scores, self.best_name)
        return [*([warning] if warning else []), *self.signs.after_validation(scores, classes)]

    def best(self) -> Best | None:
        """Return the best update so far with its score; None before the first finite score."""
        return best_of(self.state, self.best_name)

    def call(self, method: str, what: Update | Scores, *, finished: bool = False) -> None:
        """Call a method of the callbacks on rank zero: after an update, after a validation or at the end.

        Raises:
            CallbackError: A callback raised an exception on rank zero; all processes raise this error.
        """
        if not self.has_callbacks:
            return
        # `broadcast_object` sends JSON to the other processes; the exception itself stays on rank zero.
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
            except CallbackError as failure:
                failures.append(failure)
                return f"{type(failure.error).__name__}: {failure.error}"
            return None

        reason = self.reducer.broadcast_object(attempt)
        if failures:
            raise failures[0]
        if reason is not None:
            raise CallbackError(RunError(f"a callback in process 0 has failed ({reason}); the run was saved"))

    def save(self) -> None:
        """Save a checkpoint of the current state, after any earlier checkpoints that are not written yet."""
        if self.reducer.saves:
            self.saver.save(self.checkpoint(self.state), self.best())

    def checkpoint(self, state: TrainerState) -> Checkpoint:
        """Return a checkpoint of `state` and the current weights, which are not copied; flush the log first."""
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
                "log": flushed_mark(self.folder / LOG),
                "tensors": len(optimizer),
            },
        )

    def finish(self) -> Scores:
        """Choose the final model, and write it to `folder / "model"` and its scores to `folder / "result.json"`.

        Raises:
            RunError: Writing failed, or the model was written but damaged checkpoints could not be considered.
        """
        # Candidates are the mean of the last checkpoints, the best one, and the last one; damaged ones are left out.
        end, best = self.state.update, self.best()
        choices = {updates_to_average(self.recipe, end), (best.step if best else end,), (end,)}
        damaged = set(self.reducer.broadcast_object(lambda: list(self.checkpoints.lost(chain(*choices)))))
        intact = {tuple(update for update in updates if update not in damaged) for updates in choices} - {()}
        candidates = [
            AverageCandidate(each, self.scores_of(each), [*map(self.logged, each)]) for each in sorted(intact)
        ]
        final = choose(candidates, self.best_name, self.state.tie)

        if self.signs.watch.alike:  # a sign that only the last validation shows
            self.remark(self.signs.watch.alike)
        if self.reducer.is_rank_zero:
            self.checkpoints.check_claim()
            mean = self.mean(final.updates)
            write_model(self.folder / "model", self.recipe, self.task.data.final_tokenizers(), mean, update=end)
        self.say(choice_line(final, candidates, self.best_name))
        if damaged:
            raise RunError(lost_checkpoints_message(self.folder / "model", damaged, best))
        # The result is written last: it tells `has_ended` that the final model is written.
        self.reducer.broadcast_object(lambda: self.logger.conclude(end, final.scores or {}))
        return final.scores or {}

    def mean(self, updates: Updates) -> dict[str, Tensor]:
        return average([self.checkpoints.path(update) for update in updates])

    def scores_of(self, updates: Updates) -> Scores | None:
        """Score the mean of saved checkpoints on the validation set; for a single one, prefer the scores in the log."""
        if len(updates) == 1 and (logged := self.logged(updates[0])):
            return logged
        mean = self.mean(updates) if self.reducer.is_rank_zero else {}
        load_weights(self.model, self.reducer.broadcast_tensors(mean))
        results = self.evaluated()
        return results and results.scores

    def logged(self, update: int) -> Scores | None:
        """Return the validation scores of an update from the run's log; None if it has none."""
        return self.reducer.broadcast_object(lambda: logged_scores(self.folder, update))


EpochIndices = tuple[int, np.ndarray]  # an epoch, and the indices of a batch in it


def upcoming_indices(
    indices_of_epoch: Callable[[int], Sequence[np.ndarray]], reducer: Reducer, accumulate: int, epoch: int, start: int
) -> Iterator[EpochIndices]:
    """Yield the indices of this process's batches, from batch `start` of an epoch through all later epochs.

    `indices_of_epoch` lists the batches of an epoch; in each update, all processes together take `accumulate` of them.
    """
    while True:
        batches = indices_of_epoch(epoch)
        for first in range(start, len(batches), accumulate):
            for indices in reducer.shard(reducer.pad_to_world_size(batches[first : first + accumulate])):
                yield epoch, indices
        epoch, start = epoch + 1, 0


class BatchReader:
    """Callable that maps indices to a batch on a device; it can be sent to another process."""

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.data = data
        self.device = device

    def __call__(self, batch: EpochIndices) -> Batch:
        epoch, indices = batch
        return self.data.batch(indices, epoch, self.device)


def load_batches(data: Dataset, indices: Iterable[EpochIndices], device: torch.device) -> Generator[Batch]:
    """Yield batches in order, prefetched by workers or loaded by this process."""
    if count := number_of_workers(data, device):
        from heedful.workers import Workers

        # Workers must not use a GPU: they make batches on the CPU, and this process copies them.
        with closing(Workers(BatchReader(data, torch.device("cpu")), count)) as workers:
            yield from (to_device(batch, device) for batch in workers.map(indices))
    else:
        yield from map(BatchReader(data, device), indices)


def number_of_workers(data: Dataset, device: torch.device) -> int:
    """Return the number of workers of this process: `train.workers` if set, otherwise a default.

    If files are decoded for a GPU, the default is one fewer than this process's share of the cores; otherwise, it is 0.
    It is also 0 where processes are not forked, because each new process would run the user's script again. A process
    that cannot have children has no workers in any case.
    """
    workers = data.recipe.train.workers
    if workers == 0 or (workers is None and not (device.type == "cuda" and data.reads_files)):
        return 0
    from heedful.workers import can_have_workers, uses_fork

    if not can_have_workers():
        return 0
    if workers is not None:
        return workers
    return max(0, usable_cores() // num_local_processes() - 1) if uses_fork() else 0


def to_device(value: Any, device: torch.device) -> Any:
    """Copy all tensors in a batch to a device, including those inside tuples and dataclasses."""
    if isinstance(value, Tensor):
        return value.to(device, copy=True)  # copied even on the CPU, to free the worker's shared memory
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: to_device(getattr(value, field.name), device) for field in fields(value)})
    if isinstance(value, tuple):
        parts = [to_device(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
