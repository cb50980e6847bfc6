"""Replay of one update of a run: computes it again from the checkpoint before, and measures every tensor on the way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from heedful.checkpoint import Checkpoints
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.losses import Loss
from heedful.machine import prepare_process
from heedful.machine.process import own_random_numbers
from heedful.optim import clip_gradients
from heedful.progress import ProgressReporter, printer
from heedful.storage.paths import no_folder
from heedful.tasks import find_task
from heedful.tasks.task import Batch
from heedful.training.logger import Logger, logged_norm
from heedful.training.resume import check_state
from heedful.training.trainer import Trainer


@dataclass(frozen=True)
class Measured:
    name: str  # the name of the tensor in the model
    shape: tuple[int, ...]  # its shape; of a tensor in several parts that of the first one
    rms: float  # the root of the mean of the squares of its finite numbers; 0 if there are none
    largest: float  # the largest absolute value of its finite numbers; 0 if there are none
    not_finite: int  # the number of those that are infinite or no numbers (NaN)


@dataclass(frozen=True)
class ReplayedBatch:
    """Batch of a replayed update: its examples, the tensors of its forward pass, and its loss."""

    examples: list[int]  # the numbers of its examples in the prepared data
    tensors: list[Measured]  # the recorded tensors in the order in which the model computes them
    loss: float  # the sum of all terms of its loss, in nats


@dataclass(frozen=True)
class ReplayedUpdate:
    """A replayed update: its batches, and the gradient of all of them together."""

    number: int  # the number of the update
    epoch: int  # the number of the epoch, from 0
    batches: list[ReplayedBatch]
    gradients: list[Measured]  # the gradients of the parameters
    norm: float  # the norm of the gradient before clipping
    logged_norm: float | None  # that norm in the log of the run; None if it was not logged or is not finite

    def first_not_finite(self) -> tuple[str, Measured] | None:
        """Find the first tensor with a number that is not finite, and where it is; None if all are finite."""
        tensors = [(f"batch {place}", tensor) for place, batch in enumerate(self.batches) for tensor in batch.tensors]
        tensors += [("the gradients", tensor) for tensor in self.gradients]
        return next(((place, tensor) for place, tensor in tensors if tensor.not_finite), None)


def measure(name: str, *parts: Tensor) -> Measured:
    """Measure the size of a tensor, or of one that is computed in several parts, such as the steps of a recurrence."""
    values = [(x.coalesce().values() if x.is_sparse else x).detach().flatten() for x in parts]
    finite = torch.cat([x[x.isfinite()].double() for x in values])
    rms, largest = (finite.square().mean().sqrt(), finite.abs().max()) if len(finite) else (0.0, 0.0)
    count = sum(map(len, values))
    return Measured(name, tuple(parts[0].shape), float(rms), float(largest), count - len(finite))


@own_random_numbers()
def replay(folder: Path, update: int, console: Console, data_root: Path | None = None) -> ReplayedUpdate:
    """Compute an update of a run, from 1, again to the last bit, and measure its tensors; the run stays as it is.

    The updates since the newest checkpoint before it, or since the start of the run, are computed again as well.
    `data_root` is the folder of the data files, if it has moved.
    """
    trainer = open_run(folder, update, console, data_root)
    before = update - 1 - trainer.state.update
    with ProgressReporter("computing the updates before", "updates", before, say=printer(console)) as report:
        while trainer.state.update < update - 1:
            trainer.count(trainer.compute(), Logger())
            report.advance()
    return replayed(trainer)


def open_run(folder: Path, update: int, console: Console, data_root: Path | None) -> Trainer:
    """Open a run at its newest checkpoint before an update, or at its start."""
    checkpoints = Checkpoints(folder, keep_last=1)
    newest, saved = checkpoints.load_until(max(checkpoints.steps(), default=0)), checkpoints.load_until(update - 1)
    if newest is None:
        if not folder.is_dir():
            raise InputError(no_folder(folder, "`heedful runs list FOLDER` shows the runs below one"))
        raise InputError(f"{folder}: holds no checkpoint of a run; `heedful train` makes such a folder")
    recipe = newest.recipe
    if data_root is not None:
        recipe = replace(recipe, data=replace(recipe.data, root=str(data_root.absolute())))
    if data_digest(recipe) != newest.state["data"]:
        raise InputError(f"{folder}: the training or validation data has changed since the run was begun; restore it")
    prepare_process(recipe.train.threads)
    recipe = replace(recipe, train=replace(recipe.train, workers=0))  # a few updates only
    task = find_task(recipe.task).prepare(recipe, folder / "data", printer(console))
    trainer = Trainer(task, folder, checkpoints, Console(quiet=True))
    trainer.resume(saved)
    trainer.state.shares = check_state(newest).shares  # how far each update was in time: its learning rate
    return trainer


def replayed(trainer: Trainer) -> ReplayedUpdate:
    """Compute the gradient of a trainer's next update, and measure all tensors on the way."""
    step, number, epoch = trainer.training_step, trainer.state.update + 1, trainer.state.epoch
    start = trainer.state.batch
    ids = trainer.batches[start : start + trainer.recipe.train.accumulate]
    batches = trainer.next_batches()
    counts = [sum(column) for column in zip(*(batch.counts for batch in batches), strict=True)]
    with measured_objective(step) as tensors:
        losses = step.gradient(batches, number, counts, len(batches))
    norm = clip_gradients([parameter for parameter in step.model.parameters() if parameter.grad is not None], torch.inf)
    gradients = [measure(name, p.grad) for name, p in step.model.named_parameters() if p.grad is not None]
    replayed_batches = [
        ReplayedBatch(examples.tolist(), sizes, float(loss[:, 0].sum()))
        for examples, sizes, loss in zip(ids, tensors, losses, strict=True)
    ]
    return ReplayedUpdate(number, epoch, replayed_batches, gradients, norm, logged_norm(trainer.folder, number))


@contextmanager
def measured_objective(step: Any) -> Iterator[list[list[Measured]]]:
    """Measure the tensors of each forward pass of a training step, in the order of its batches."""
    original, measured = step.objective, []

    def objective(model: Any, batch: Batch) -> Sequence[Loss]:
        parts: dict[str, list[Tensor]] = {}

        def note(name: str, x: Tensor) -> Tensor:
            parts.setdefault(name, []).append(x.detach())
            return x

        with recording(model, edits={name: partial(note, name) for name in taps(model)}):
            terms = original(model, batch)
        losses = {f"loss {place}": [term.sum.detach()] for place, term in enumerate(terms)}
        measured.append([measure(name, *tensors) for name, tensors in (parts | losses).items()])
        return terms

    step.objective = objective
    try:
        yield measured
    finally:
        step.objective = original
