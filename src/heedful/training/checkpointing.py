"""Saving checkpoints in order during training, and averaging the last ones into the final model."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from heedful.checkpoint import Best, Checkpoint
from heedful.config.schema import Recipe, TrainConfig
from heedful.errors import RunError
from heedful.tasks.task import Scores
from heedful.training.improvement import higher_is_better, rank
from heedful.training.logger import format_scores
from heedful.training.trainer_state import LOSS

if TYPE_CHECKING:
    from heedful.checkpoint import CheckpointStore

Updates = tuple[int, ...]  # updates whose checkpoints are averaged; a single one: its checkpoint as it is


class AverageCandidate(NamedTuple):
    """Candidate for the final model: the mean of some checkpoints, with its scores on the validation set.

    `scores` is None without a validation set. `parts` has the scores of each averaged checkpoint, or None for one
    that the run has not evaluated.
    """

    updates: Updates
    scores: Scores | None
    parts: Sequence[Scores | None] = ()

    def __str__(self) -> str:
        *others, last = map(str, self.updates)
        return f"the mean of updates {', '.join(others)} and {last}" if others else f"update {last}"

    def chance(self, score: str) -> float:
        """Estimate how much better a checkpoint may score by chance: twice the standard deviation of the parts' scores.

        The estimate uses the differences between successive scores, since a trend has little effect on these (von
        Neumann 1941). It is 0 with fewer than two finite scores, as for a single checkpoint.
        """
        values = [higher_is_better(part, score) for part in self.parts if part and score in part]
        steps = [(after - before) ** 2 for before, after in pairwise(filter(isfinite, values))]
        # The difference of two independent scores has twice their variance, hence 2 n in the denominator.
        return 2 * sqrt(sum(steps) / (2 * len(steps))) if steps else 0.0


def updates_to_average(recipe: Recipe, end: int) -> Updates:
    """Select the updates whose checkpoints are averaged: at most `average_last`, including the last one of the run.

    All but the last are multiples of `save_every`. Early checkpoints would spoil the mean, so only those in the second
    half of the run, and after the warm-up, are averaged.
    """
    train = recipe.train
    early = max(end // 2, recipe.optimizer.warmup)
    late = [update for update in range(train.save_every, end, train.save_every) if update > early]
    # The last update is one of the `average_last`, even if it is not a multiple of `save_every`.
    return (*late[max(0, len(late) + 1 - train.average_last) :], end)


def choose(candidates: Sequence[AverageCandidate], score: str, tie: str | None = LOSS) -> AverageCandidate:
    """Choose the mean of several checkpoints, unless a single one is better by more than chance.

    The best of many checkpoints is partly lucky: its score on the validation set is higher than on other data.
    Ties are broken by the score `tie`, as during training (`improvement.rank`). Without scores, the mean of the
    largest number of checkpoints is chosen, or the earliest if all candidates are single ones.
    """

    def order(one: AverageCandidate) -> tuple[float, float, int, int]:
        value, loss = rank(one.scores, score, tie) if one.scores else (0.0, 0.0)
        return (
            # Only a mean of several has a `chance` above 0; a single checkpoint wins if it is better by more than that.
            value + one.chance(score),
            loss + (one.chance(tie) if tie else 0.0),
            len(one.updates),
            -one.updates[-1],
        )

    return max(candidates, key=order)


def choice_line(final: AverageCandidate, candidates: Sequence[AverageCandidate], score: str) -> str:
    line = f"final model: {final}"
    if final.scores:
        others = [one for one in candidates if one is not final and one.scores]
        compared = "; ".join(f"{one}: {score} {one.scores[score]:.4g}" for one in others if one.scores)
        line += f", {format_scores(final.scores)}" + f" ({compared})" * bool(compared)
        values = [higher_is_better(one.scores, score) for one in others if one.scores]
        if max(values, default=-inf) > higher_is_better(final.scores, score):
            line += "; the better score of a single checkpoint is within the range of chance"
    return line


def lost_checkpoints_message(model: Path, lost: set[int], best: Best | None) -> str:
    """Format a message about lost checkpoints, with which a different final model might have been chosen."""
    names = ", ".join(
        f"{update} (the best)" if best and best.step == update else str(update) for update in sorted(lost)
    )
    updates = "update" if len(lost) == 1 else "updates"
    return (
        f"{model} was written, but not all candidates could be considered: checkpoints are missing or damaged "
        f"({updates} {names}); use the model anyway, or train again with a different --out"
    )


class CheckpointSaver:
    """Context manager that saves checkpoints in a thread; those that cannot be written wait in memory.

    If a checkpoint is still being written when the next one is due, training waits for it. The end of the context also
    waits, so that nothing is written to a folder after its claim is released.

    Checkpoints that the end of the run needs, to average them or as the best one, are written in order. A resumed run
    then lacks only checkpoints after the newest one on disk, and recomputes them: a full disk does not change the final
    model.

    Args:
        checkpoints: The checkpoints that the run has saved.
        train: The settings for how often to save, and how many checkpoints to average.
        say: Prints a message about a save that failed in the thread; training continues.
    """

    def __init__(self, checkpoints: "CheckpointStore", train: TrainConfig, say: Callable[[str], None]) -> None:
        self.checkpoints = checkpoints
        self.every = train.save_every
        self.average_last = train.average_last
        self.say = say
        self.waiting: dict[int, Checkpoint] = {}
        self.running: Future[None] | None = None

    def __enter__(self) -> "CheckpointSaver":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.settle()
        finally:
            self.settle()  # if a signal has ended the first wait, the thread is still writing

    def begin(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Wait until the previous checkpoint is written, then start saving a copy of this one in the background."""
        self.settle()
        weights, optimizer = (
            {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
            for tensors in (checkpoint.weights, checkpoint.optimizer)
        )
        pool = ThreadPoolExecutor(max_workers=1)  # new for each save, so that torch's memory for its thread is freed
        self.running = pool.submit(self.write, replace(checkpoint, weights=weights, optimizer=optimizer), best)
        pool.shutdown(wait=False)

    def settle(self) -> None:
        """Wait until the checkpoint that is being saved is written; report a RunError, and raise any other error."""
        if self.running:
            error = self.running.exception()
            self.running = None
            # A full disk does not end training, but a bug does.
            if isinstance(error, RunError):
                self.say(f"NOT SAVED: {error}; the checkpoint is kept in memory until the next save")
            elif error:
                raise error

    def report(self) -> None:
        """Report a background save that has failed, without waiting for one that is still running."""
        if self.running and self.running.done():
            self.settle()

    def save(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Save a checkpoint, and return when it is written; after a RunError, the earlier ones are intact."""
        self.settle()
        self.write(checkpoint, best)

    def write(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Write a checkpoint, after retrying any that could not be written earlier, and mark the best one so far."""
        self.waiting[checkpoint.step] = checkpoint
        try:
            for step in sorted(self.waiting):
                self.mark(best)  # before each save, which would delete the best one if it were not marked
                self.checkpoints.save(self.waiting[step])
                del self.waiting[step]
            self.mark(best)
        except RunError:
            # Only these are still needed: the newest, the best, and those to be averaged.
            steps = sorted(self.waiting)
            regular = [step for step in steps if step % self.every == 0]
            needed = {*steps[-1:], *regular[-self.average_last :]} | ({best.step} if best else set())
            self.waiting = {step: self.waiting[step] for step in steps if step in needed}
            raise

    def mark(self, best: Best | None) -> None:
        """Mark the best checkpoint, if it is saved and not marked yet."""
        if best and best != self.checkpoints.best and best.step in self.checkpoints.steps():
            self.checkpoints.mark_best(best.step, best.metric, best.value)

    def try_to_mark(self, best: Best | None) -> None:
        """Mark the best checkpoint if the disk allows it; otherwise the next save does so before deleting anything.

        This must not be called while the thread is writing a checkpoint.
        """
        with suppress(RunError):
            self.mark(best)
