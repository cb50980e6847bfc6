"""Checkpoints of a run, published in the order in which they were made; what a full disk refuses waits in memory."""

from contextlib import suppress
from dataclasses import replace

from torch import Tensor

from heedful.checkpoint import Best, Checkpoint, Checkpoints
from heedful.config.schema import TrainConfig
from heedful.errors import RunError


class CheckpointSaver:
    """Saves checkpoints, and keeps in memory what could not be written and the end of the run needs.

    No checkpoint is published before an earlier one that the end needs. So whatever a run that goes on from the newest
    one cannot find on the disk is later than that, and is computed again: a full disk changes no final model.

    Args:
        checkpoints: what the run has saved.
        train: how often it saves, and how many checkpoints become the final model.
    """

    def __init__(self, checkpoints: Checkpoints, train: TrainConfig) -> None:
        self.checkpoints = checkpoints
        self.every = train.save_every
        self.average_last = train.average_last
        self.waiting: dict[int, Checkpoint] = {}

    def save(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Publish what waits and a new checkpoint, and mark the best one so far.

        Raises:
            RunError: something could not be written; a copy of the checkpoint waits for the next call.
        """
        self.waiting[checkpoint.step] = checkpoint
        try:
            self.publish(best)
        except RunError:
            self.waiting[checkpoint.step] = copied(checkpoint)
            self.waiting = {step: self.waiting[step] for step in self.needed(best)}
            raise

    def publish(self, best: Best | None) -> None:
        """Write what waits, oldest first; the best is marked before each, as it is deleted otherwise.

        Raises:
            RunError: something could not be written.
        """
        for step in sorted(self.waiting):
            self.mark(best)
            self.checkpoints.save(self.waiting[step])
            del self.waiting[step]
        self.mark(best)

    def mark(self, best: Best | None) -> None:
        """Mark the best checkpoint, if it is saved and not marked yet.

        Raises:
            RunError: writing failed.
        """
        if best and best != self.checkpoints.best and best.step in self.checkpoints.steps():
            self.checkpoints.mark_best(best.step, best.metric, best.value)

    def try_to_mark(self, best: Best | None) -> None:
        """Mark the best checkpoint; where the disk refuses that, the next save does it, before it deletes anything."""
        with suppress(RunError):
            self.mark(best)

    def needed(self, best: Best | None) -> list[int]:
        """The waiting steps that the run needs to go on or to end: the newest, the best, and those to be averaged."""
        steps = sorted(self.waiting)
        regular = [step for step in steps if step % self.every == 0]
        kept = {steps[-1], *regular[-self.average_last :]} | ({best.step} if best else set())
        return [step for step in steps if step in kept]


def copied(checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint that training does not change any more, on the CPU."""
    return replace(checkpoint, weights=on_cpu(checkpoint.weights), optimizer=on_cpu(checkpoint.optimizer))


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of tensors."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
