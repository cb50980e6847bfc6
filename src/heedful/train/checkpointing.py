"""Saving of checkpoints while training goes on, in order; checkpoints that a full disk refuses wait in memory."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from torch import Tensor

from heedful.checkpoint import Best, Checkpoint
from heedful.config.schema import TrainConfig
from heedful.errors import RunError

if TYPE_CHECKING:
    from heedful.checkpoint import CheckpointStore


class CheckpointSaver:
    """Context manager that saves checkpoints in a thread; what cannot be written waits in memory while it is needed.

    Training waits for a checkpoint that is still being written when the next one is due, and where the context ends:
    nothing is written into a folder that is no longer claimed.

    No checkpoint is published before an earlier one that the end of the run needs. So any checkpoint that a resumed
    run misses on the disk is later than the newest one, and is computed again: a full disk changes no final model.

    Args:
        checkpoints: the checkpoints that the run has saved.
        train: the settings of how often to save, and how many checkpoints to average.
        tell: called with the error of a save that failed in the thread.
    """

    def __init__(self, checkpoints: "CheckpointStore", train: TrainConfig, tell: Callable[[RunError], None]) -> None:
        self.checkpoints = checkpoints
        self.every = train.save_every
        self.average_last = train.average_last
        self.tell = tell
        self.waiting: dict[int, Checkpoint] = {}
        self.running: Future[None] | None = None

    def __enter__(self) -> "CheckpointSaver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.settle()
        finally:
            self.settle()  # a signal has ended the first wait, and the thread writes still

    def begin(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Begin to save a copy of a checkpoint, once the one before is written."""
        self.settle()
        pool = ThreadPoolExecutor(max_workers=1)  # for this save alone: what torch keeps for a thread ends with it
        self.running = pool.submit(self.write, copied(checkpoint), best)
        pool.shutdown(wait=False)

    def settle(self) -> None:
        """Wait until the checkpoint that is being saved is written, and tell of an error."""
        if self.running:
            error = self.running.exception()
            self.running = None
            if isinstance(error, RunError):
                self.tell(error)
            elif error:
                raise error

    def report(self) -> None:
        """Tell of a save that has failed meanwhile; do not wait for one that is running."""
        if self.running and self.running.done():
            self.settle()

    def save(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Save a checkpoint, and return when it is written.

        Raises:
            RunError: writing failed; the earlier checkpoints are intact.
        """
        self.settle()
        self.write(checkpoint, best)

    def write(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Write a checkpoint, after those that could not be written before, and mark the best one so far.

        Raises:
            RunError: writing failed; the checkpoint waits for the next call.
        """
        self.waiting[checkpoint.step] = checkpoint
        try:
            self.publish(best)
        except RunError:
            self.waiting = {step: self.waiting[step] for step in self.needed(best)}
            raise

    def publish(self, best: Best | None) -> None:
        """Write the waiting checkpoints, oldest first; the best is marked before each, or it would be deleted.

        Raises:
            RunError: writing failed.
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
        """Mark the best checkpoint if the disk allows it; otherwise the next save does so before deleting anything.

        No checkpoint may be in the thread then.
        """
        with suppress(RunError):
            self.mark(best)

    def needed(self, best: Best | None) -> list[int]:
        """List the waiting steps that the run still needs: the newest, the best, and the steps to be averaged."""
        steps = sorted(self.waiting)
        regular = [step for step in steps if step % self.every == 0]
        kept = {steps[-1], *regular[-self.average_last :]} | ({best.step} if best else set())
        return [step for step in steps if step in kept]


def copied(checkpoint: Checkpoint) -> Checkpoint:
    """Copy a checkpoint to the CPU, so that further training does not change it."""
    return replace(checkpoint, weights=on_cpu(checkpoint.weights), optimizer=on_cpu(checkpoint.optimizer))


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to the CPU."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
