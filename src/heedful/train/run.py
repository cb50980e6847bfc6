"""A run: a model, its data, and where it is between them. Everything it needs to go on is in its last checkpoint."""

import time
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from heedful.checkpoint import Checkpoint, Checkpoints, average, write_model
from heedful.data.chance import seed_of
from heedful.errors import RunError
from heedful.machine import choose_device, environment
from heedful.models import load_weights, weights
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.tasks.task import Batch, Scores, Task, merit
from heedful.train.journal import Journal
from heedful.train.learner import Learner, Update
from heedful.train.progress import Progress, Window
from heedful.train.start import begin_with

MOST_SKIPPED = 10  # updates in a row without a finite gradient before a run gives up


class Run:
    """Training in one folder, at its start; `resume` takes it to where a checkpoint was made."""

    def __init__(self, task: Task, folder: Path, checkpoints: Checkpoints, console: Console) -> None:
        self.task = task
        self.recipe = recipe = task.recipe
        self.folder = folder
        self.console = console
        self.device = choose_device(recipe.train.device)
        torch.manual_seed(seed_of(recipe.train.seed))
        self.model = task.build(recipe, task.tokenizers).to(self.device)
        task.initialise(self.model)
        fresh = begin_with(recipe, self.model, task.tokenizers)
        if fresh:
            console.print(f"begins with the weights of {recipe.train.start}; fresh: {', '.join(fresh)}", markup=False)
        self.learner = Learner(self.model, task.loss, recipe)
        self.checkpoints = checkpoints
        self.progress = Progress()
        self.batches = task.epoch(self.progress.epoch)
        self.saved_at = time.monotonic()

    def resume(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint of this run."""
        load_weights(self.model, saved.weights)
        load_optimizer_tensors(self.learner.optimizer, self.model, saved.optimizer)
        self.progress = Progress.from_json(saved.state["progress"])
        self.batches = self.task.epoch(self.progress.epoch)
        self.remember_best()
        self.console.print(f"going on after update {self.progress.update}")
        if saved.state["environment"] != environment(self.device):
            self.console.print("the machine or torch differs from the last time: exact to rounding only")

    def is_finished(self) -> bool:
        """Whether the recipe asks for no more updates."""
        train, progress = self.recipe.train, self.progress
        return (
            progress.update >= train.max_updates
            or (train.max_epochs is not None and progress.epoch >= train.max_epochs)
            or (train.patience is not None and progress.worse >= train.patience)
        )

    def update(self, journal: Journal) -> None:
        """Take one update, and do what is due after it: log, validate, save."""
        batches = self.next_batches()
        self.count(self.learner.update(batches, self.progress.update + 1), journal)
        update = self.progress.update
        if update % self.recipe.train.validate_every == 0:
            self.validate(journal)
        elif update % self.recipe.train.save_every == 0 or self.minutes_since_save() > self.recipe.train.save_minutes:
            self.try_to_save()

    def next_batches(self) -> list[Batch]:
        """The batches of the next update; the last update of an epoch may have fewer."""
        start = self.progress.batch
        ids = self.batches[start : start + self.recipe.train.accumulate]
        self.progress.batch += len(ids)
        return [self.task.batch(batch, self.progress.epoch, self.device) for batch in ids]

    def count(self, update: Update, journal: Journal) -> None:
        """Take note of an update, and log if it is time.

        Raises:
            RunError: too many updates in a row had no finite gradient.
        """
        progress, window = self.progress, self.progress.window
        progress.update += 1
        progress.tokens += update.tokens
        if progress.batch == len(self.batches):
            progress.epoch, progress.batch = progress.epoch + 1, 0
            self.batches = self.task.epoch(progress.epoch)
        progress.skipped += not update.finite
        progress.skipped_in_a_row = 0 if update.finite else progress.skipped_in_a_row + 1
        if progress.skipped_in_a_row == MOST_SKIPPED:
            raise RunError(
                f"no finite gradient in {MOST_SKIPPED} updates up to {progress.update}: the run has diverged; "
                "begin another with a lower optimizer.lr, a longer optimizer.warmup or optimizer.clip_norm = 1.0"
            )
        if update.finite:
            window.add(update.losses, update.nlls, update.counts)
        journal.advance(progress.update, update.tokens)
        if progress.update % self.recipe.train.log_every == 0:
            summary = self.task.summary(window.means()) if window.counts else {}
            journal.record(progress.update, {**summary, "lr": update.lr, "norm": update.norm})
            progress.window = Window()

    def validate(self, journal: Journal) -> None:
        """Score the model, remember whether it is the best, and save it."""
        scores, progress = self.scores(), self.progress
        if scores is not None:
            value = merit(scores, self.task.best)
            is_better = progress.best is None or value > progress.best
            if is_better:
                progress.best, progress.best_update = value, progress.update
            progress.worse = 0 if is_better else progress.worse + 1
            journal.record_validation(progress.update, scores)
        self.try_to_save()
        journal.restart_clock()

    @torch.no_grad()
    def scores(self) -> Scores | None:
        """Those of the validation set, from the float32 weights; None where there is none."""
        self.model.eval()
        return self.task.validate(self.model)

    def minutes_since_save(self) -> float:
        """Time since the last checkpoint."""
        return (time.monotonic() - self.saved_at) / 60

    def try_to_save(self) -> None:
        """Save; if that fails tell it and go on, so that a full disk does not end a run."""
        try:
            self.save()
        except RunError as error:
            self.console.print(f"NOT SAVED: {error}; training goes on")

    def save(self) -> None:
        """Publish a checkpoint of this very moment.

        Raises:
            RunError: it could not be written; the earlier ones are intact.
        """
        self.checkpoints.save(
            Checkpoint(
                step=self.progress.update,
                recipe=self.recipe,
                tokenizers=self.task.tokenizers,
                weights=weights(self.model),
                optimizer=optimizer_tensors(self.learner.optimizer, self.model),
                state={
                    "progress": self.progress.to_json(),
                    "data": self.task.digest,
                    "environment": environment(self.device),
                },
            )
        )
        self.remember_best()
        self.saved_at = time.monotonic()

    def remember_best(self) -> None:
        """Mark the best checkpoint; a kill may fall between saving and marking, so it is done after resuming too."""
        progress = self.progress
        if progress.best is not None and progress.best_update in self.checkpoints.steps():
            self.checkpoints.mark_best(progress.best_update, self.task.best, progress.best)

    def finish(self, journal: Journal) -> None:
        """Write the final model to `folder / "model"`, and its scores to `folder / "result.json"`."""
        final = self.final_weights()
        load_weights(self.model, final)
        scores = self.scores()
        write_model(self.folder / "model", self.recipe, self.task.tokenizers, final)
        if scores is not None:
            journal.conclude(self.progress.update, scores)

    def final_weights(self) -> dict[str, Tensor]:
        """The mean of the last `average_last` checkpoints; of one, the best, or without validation the last."""
        train = self.recipe.train
        if train.average_last > 1:
            regular = [step for step in self.checkpoints.steps() if step % train.save_every == 0]
            return average([self.checkpoints.path(step) for step in regular[-train.average_last :]])
        best = self.checkpoints.best
        step = best.step if best else self.progress.update
        return average([self.checkpoints.path(step)])
