"""Saving of checkpoints while training goes on, in order; checkpoints that a full disk refuses wait in memory."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from torch import Tensor

from heedful.checkpoint import Best, Checkpoint, CheckpointStore
from heedful.config.schema import TrainConfig
from heedful.errors import RunError


class CheckpointSaver:
    """Context manager that saves checkpoints in a thread; what cannot be written waits in memory while it is needed.

    A checkpoint is copied, and written while training goes on; the next one waits until it is written. Leaving the
    context waits as well, so that nothing is written into a folder that is no longer claimed.

    No checkpoint is published before an earlier one that the end of the run needs. So any checkpoint that a resumed
    run misses on the disk is later than the newest one, and is computed again: a full disk changes no final model.

    Args:
        checkpoints: the checkpoints that the run has saved.
        train: the settings of how often to save, and how many checkpoints to average.
    """

    def __init__(self, checkpoints: CheckpointStore, train: TrainConfig) -> None:
        self.checkpoints = checkpoints
        self.every = train.save_every
        self.average_last = train.average_last
        self.waiting: dict[int, Checkpoint] = {}
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self.running: Future[None] | None = None

    def __enter__(self) -> "CheckpointSaver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.shutdown()

    def begin(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Begin to save a copy of a checkpoint, as soon as the one before is written.

        Raises:
            RunError: the one before could not be written; it waits for this save, which has begun.
        """
        own = copied(checkpoint)
        try:
            self.finish()
        finally:
            self.running = self.thread.submit(self.save, own, best)

    def finish(self) -> None:
        """Wait until the checkpoint that is being saved is written.

        Raises:
            RunError: it could not be written; it waits in memory for the next save.
        """
        running, self.running = self.running, None
        if running:
            running.result()

    def report(self) -> None:
        """Raise the error of a save that has failed meanwhile, once; do not wait for one that is running.

        Raises:
            RunError: a checkpoint could not be written; it waits in memory for the next save.
        """
        if self.running and self.running.done():
            self.finish()

    def save(self, checkpoint: Checkpoint, best: Best | None) -> None:
        """Save a checkpoint, after those that could not be written before, and mark the best one so far.

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
        """Mark the best checkpoint if the disk allows it; otherwise the next save does so before deleting anything."""
        wait([self.running] if self.running else [])
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
