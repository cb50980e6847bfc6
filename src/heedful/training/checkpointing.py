"""Saving of checkpoints during training, in order, and the average of the last ones as the final model."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from heedful.checkpoint import Best, Checkpoint
from heedful.config.schema import Recipe, TrainConfig
from heedful.errors import RunError
from heedful.tasks.task import Scores
from heedful.training.improvement import higher_is_better, rank
from heedful.training.logger import shown
from heedful.training.trainer_state import LOSS

if TYPE_CHECKING:
    from heedful.checkpoint import CheckpointStore


Updates = tuple[int, ...]  # the updates of the averaged checkpoints; a single one: the checkpoint itself


class AverageCandidate(NamedTuple):
    """Candidate for the final model: the updates of the averaged checkpoints, and its scores on the validation set.

    `scores` is None without a validation set. `parts` are the scores of each averaged checkpoint, None where the run
    has not computed them.
    """

    updates: Updates
    scores: Scores | None
    parts: Sequence[Scores | None] = ()

    def __str__(self) -> str:
        *others, last = map(str, self.updates)
        return f"the mean of updates {', '.join(others)} and {last}" if others else f"update {last}"

    def chance(self, score: str) -> float:
        """Estimate by how much a checkpoint is better by chance: twice the standard deviation of the parts' scores.

        It is estimated from the differences between neighbours, in which a trend counts little (von Neumann 1941). It
        is 0 where fewer than two scores are known, as for a single checkpoint.
        """
        values = [higher_is_better(part, score) for part in self.parts if part and score in part]
        steps = [(after - before) ** 2 for before, after in pairwise(filter(isfinite, values))]
        return 2 * sqrt(sum(steps) / (2 * len(steps))) if steps else 0.0


def updates_to_average(recipe: Recipe, end: int) -> Updates:
    """Select the updates whose checkpoints are averaged: `average_last` updates, the last update of the run included.

    All but the last are multiples of `save_every`. Early checkpoints would spoil the mean, so that fewer are averaged
    if the second half of the run, or its part after the warm-up, has fewer.
    """
    train = recipe.train
    early = max(end // 2, recipe.optimizer.warmup)
    late = [update for update in range(train.save_every, end, train.save_every) if update > early]
    return (*late[max(0, len(late) + 1 - train.average_last) :], end)


def choose(candidates: Sequence[AverageCandidate], score: str, tie: str | None = LOSS) -> AverageCandidate:
    """Choose a mean, unless a single checkpoint is better by more than chance; without scores a mean, or the earliest.

    The best of many checkpoints is so partly by luck: its score on the validation set is higher than on other data.
    Equal scores are decided by the score `tie`, as during training (`improvement.rank`).
    """

    def order(one: AverageCandidate) -> tuple[float, float, int, int]:
        value, loss = rank(one.scores, score, tie) if one.scores else (0.0, 0.0)
        return (
            value + one.chance(score),
            loss + (one.chance(tie) if tie else 0.0),
            len(one.updates),
            -one.updates[-1],
        )

    return max(candidates, key=order)


def choice_line(final: AverageCandidate, candidates: Sequence[AverageCandidate], score: str) -> str:
    line = f"final model: {final}"
    if final.scores:
        others = [one for one in candidates if one is not final]
        compared = "; ".join(f"{one}: {score} {one.scores[score]:.4g}" for one in others if one.scores)
        line += f", {shown(final.scores)}" + f" ({compared})" * bool(compared)
        values = [higher_is_better(one.scores, score) for one in others if one.scores]
        if max(values, default=-inf) > higher_is_better(final.scores, score):
            line += "; what is better than the mean is so by no more than its checkpoints scatter"
    return line


def lost_line(model: Path, lost: set[int], best: Best | None) -> str:
    """Format a message about lost checkpoints, because of which the final model may be another."""
    names = ", ".join(f"{update}, the best" if best and best.step == update else str(update) for update in sorted(lost))
    return (
        f"{model} is written, but not from all that it should be chosen from: the checkpoints of update {names} are "
        "missing or damaged; take the model as it is, or train again with another --out"
    )


def ending_line(result: dict[str, Any]) -> str:
    values = shown({name: value for name, value in result.items() if name != "update"})
    return f"this run has ended after update {result['update']}{values and f': {values}'}; nothing is left to do"


class CheckpointSaver:
    """Context manager that saves checkpoints in a thread; what cannot be written waits in memory while it is needed.

    Training waits for a checkpoint that is still being written when the next one is due, and where the context ends:
    nothing is written into a folder that is no longer claimed.

    No checkpoint is published before an earlier one that the end of the run needs. So any checkpoint that a resumed
    run misses on the disk is later than the newest one, and is computed again: a full disk changes no final model.

    Args:
        checkpoints: the checkpoints that the run has saved.
        train: the settings of how often to save, and how many checkpoints to average.
        warn: called with the error of a save that failed in the thread.
    """

    def __init__(self, checkpoints: "CheckpointStore", train: TrainConfig, warn: Callable[[RunError], None]) -> None:
        self.checkpoints = checkpoints
        self.every = train.save_every
        self.average_last = train.average_last
        self.warn = warn
        self.waiting: dict[int, Checkpoint] = {}
        self.running: Future[None] | None = None

    def __enter__(self) -> "CheckpointSaver":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.settle()
        finally:
            self.settle()  # a signal has ended the first wait, and the thread still writes

    def begin(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Begin to save a copy of a checkpoint, which training does not change, once the one before is written."""
        self.settle()
        copies = replace(checkpoint, weights=on_cpu(checkpoint.weights), optimizer=on_cpu(checkpoint.optimizer))
        pool = ThreadPoolExecutor(max_workers=1)  # for this save alone: what torch keeps for a thread ends with it
        self.running = pool.submit(self.write, copies, best)
        pool.shutdown(wait=False)

    def settle(self) -> None:
        """Wait until the checkpoint that is being saved is written, and report an error."""
        if self.running:
            error = self.running.exception()
            self.running = None
            if isinstance(error, RunError):
                self.warn(error)
            elif error:
                raise error

    def report(self) -> None:
        """Report a save that has failed meanwhile; do not wait for one that is running."""
        if self.running and self.running.done():
            self.settle()

    def save(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Save a checkpoint, and return when it is written; a RunError says that the earlier ones are intact."""
        self.settle()
        self.write(checkpoint, best)

    def write(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Write a checkpoint, after those that could not be written before, and mark the best one so far."""
        # Oldest first: a checkpoint on the disk means that all earlier ones that are needed are there as well.
        self.waiting[checkpoint.step] = checkpoint
        try:
            for step in sorted(self.waiting):
                self.mark(best)  # before each save, which would delete a best one that is not marked
                self.checkpoints.save(self.waiting[step])
                del self.waiting[step]
            self.mark(best)
        except RunError:
            self.waiting = {step: self.waiting[step] for step in self.needed(best)}
            raise

    def mark(self, best: Best | None) -> None:
        """Mark the best checkpoint, if it is saved and not marked yet."""
        if best and best != self.checkpoints.best and best.step in self.checkpoints.steps():
            self.checkpoints.mark_best(best.step, best.metric, best.value)

    def try_to_mark(self, best: Best | None) -> None:
        """Mark the best checkpoint if the disk allows it; otherwise the next save does so before deleting anything.

        No checkpoint may be in the thread then.
        """
        with suppress(RunError):
            self.mark(best)

    def needed(self, best: Best | None) -> list[int]:
        """List the waiting steps that the run still needs: the newest, the best, and the steps to be averaged."""
        steps = sorted(self.waiting)
        regular = [step for step in steps if step % self.every == 0]
        keep = {*steps[-1:], *regular[-self.average_last :]} | ({best.step} if best else set())
        return [step for step in steps if step in keep]


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
