"""Replay of one update of a run from the checkpoint before it, measuring every tensor along the way."""

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
from heedful.machine.process import preserve_rng_state
from heedful.optim import clip_gradients
from heedful.progress import ProgressReporter, printer
from heedful.storage.paths import no_folder
from heedful.tasks import find_task
from heedful.tasks.task import Batch
from heedful.training.logger import logged_norm
from heedful.training.resume import check_state
from heedful.training.trainer import Trainer


@dataclass(frozen=True)
class TensorStatistics:
    name: str  # of the tensor in the model
    shape: tuple[int, ...]  # for a tensor in several parts, the shape of the first part
    rms: float  # root mean square of its finite values; 0 if there are none
    largest: float  # largest absolute value among its finite values; 0 if there are none
    not_finite: int  # number of infinite and NaN values


@dataclass(frozen=True)
class ReplayedBatch:
    examples: list[int]  # indices of its examples in the prepared data
    tensors: list[TensorStatistics]  # of the forward pass, in the order in which the model computes them
    loss: float  # the sum of all its terms, over all predictions


@dataclass(frozen=True)
class ReplayedUpdate:
    number: int
    epoch: int  # from 0
    batches: list[ReplayedBatch]
    gradients: list[TensorStatistics]  # of the parameters, over all batches
    norm: float  # gradient norm before clipping
    logged_norm: float | None  # the norm in the run log; None if it was not logged or is not finite

    def first_not_finite(self) -> tuple[str, TensorStatistics] | None:
        """Return the first tensor with a value that is not finite, and where it occurs; None if all are finite."""
        tensors = [(f"batch {index}", tensor) for index, batch in enumerate(self.batches) for tensor in batch.tensors]
        tensors += [("the gradients", tensor) for tensor in self.gradients]
        return next(((origin, tensor) for origin, tensor in tensors if tensor.not_finite), None)


def measure(name: str, *parts: Tensor) -> TensorStatistics:
    """Measure the values of a tensor; it has several parts if it is computed step by step, as in a recurrence."""
    values = [(x.coalesce().values() if x.is_sparse else x).detach().flatten() for x in parts]
    finite = torch.cat([x[x.isfinite()].double() for x in values])
    rms, largest = (finite.square().mean().sqrt(), finite.abs().max()) if len(finite) else (0.0, 0.0)
    count = sum(map(len, values))
    return TensorStatistics(name, tuple(parts[0].shape), float(rms), float(largest), count - len(finite))


@preserve_rng_state()
def replay(folder: Path, update: int, console: Console, data_root: Path | None = None) -> ReplayedUpdate:
    """Recompute an update of a run bit for bit, and measure its tensors; the run stays unchanged.

    Updates are counted from 1. Training resumes from the newest earlier checkpoint, or from the start of the run, and
    recomputes all updates from there. `data_root` is the new location of the data folder, if it has moved.
    """
    trainer = open_run(folder, update, console, data_root)
    before = update - 1 - trainer.state.update
    with ProgressReporter("recomputing earlier updates", "updates", before, say=printer(console)) as report:
        while trainer.state.update < update - 1:
            trainer.count(trainer.compute())
            report.advance()
    return replay_next_update(trainer)


def open_run(folder: Path, update: int, console: Console, data_root: Path | None) -> Trainer:
    checkpoints = Checkpoints(folder, keep_last=1)
    newest, saved = checkpoints.load_until(max(checkpoints.steps(), default=0)), checkpoints.load_until(update - 1)
    if newest is None:
        if not folder.is_dir():
            raise InputError(no_folder(folder, "`heedful runs list FOLDER` lists the runs below FOLDER"))
        raise InputError(f"{folder}: contains no checkpoints; give a run folder, which `heedful train` creates")
    # A run that stopped without saving is at most `save_every` updates after its newest checkpoint.
    last = min(newest.step + newest.recipe.train.save_every, newest.recipe.train.max_updates)
    if update > last:
        raise InputError(
            f"{folder}: update {update:,} is too late: the newest checkpoint is from update {newest.step:,}; choose an "
            f"update up to {last:,}"
        )
    recipe = newest.recipe
    if data_root is not None:
        recipe = replace(recipe, data=replace(recipe.data, root=str(data_root.absolute())))
    if data_digest(recipe) != newest.state["data"]:
        raise InputError(f"{folder}: the training or validation data has changed since the run began; restore it")
    prepare_process(recipe.train.threads)
    recipe = replace(recipe, train=replace(recipe.train, workers=0))  # a few updates are not worth starting workers
    task = find_task(recipe.task).prepare(recipe, folder / "data", printer(console))
    trainer = Trainer(task, folder, checkpoints, Console(quiet=True))
    trainer.resume(saved)
    trainer.state.shares = check_state(newest).shares  # with `max_minutes`, the learning rate follows the shares
    return trainer


def replay_next_update(trainer: Trainer) -> ReplayedUpdate:
    """Compute the gradient of a trainer's next update without applying it, and measure all tensors along the way."""
    step, number, epoch = trainer.training_step, trainer.state.update + 1, trainer.state.epoch
    start = trainer.state.batch
    ids = trainer.batch_indices[start : start + trainer.recipe.train.accumulate]
    batches = trainer.next_batches()
    counts = [sum(column) for column in zip(*(batch.counts for batch in batches), strict=True)]
    divisors = step.divisors(counts, sum(batch.tokens for batch in batches))
    with measured_objective(step) as tensors:
        losses = step.gradient(batches, number, divisors, len(batches))
    norm = clip_gradients([parameter for parameter in step.model.parameters() if parameter.grad is not None], torch.inf)
    gradients = [measure(name, p.grad) for name, p in step.model.named_parameters() if p.grad is not None]
    replayed_batches = [
        ReplayedBatch(examples.tolist(), sizes, float(loss[:, 0].sum()))
        # In float16, a gradient that overflows is computed again; the last pass counts.
        for examples, sizes, loss in zip(ids, tensors[-len(ids) :], losses, strict=True)
    ]
    return ReplayedUpdate(number, epoch, replayed_batches, gradients, norm, logged_norm(trainer.folder, number))


@contextmanager
def measured_objective(step: Any) -> Iterator[list[list[TensorStatistics]]]:
    """Measure the tensors of each forward pass of a training step in the block; yield the list that collects them."""
    original, sizes = step.objective, []

    def objective(model: Any, batch: Batch) -> Sequence[Loss]:
        parts: dict[str, list[Tensor]] = {}

        def note(name: str, x: Tensor) -> Tensor:
            parts.setdefault(name, []).append(x.detach())
            return x

        with recording(model, edits={name: partial(note, name) for name in taps(model)}):
            terms = original(model, batch)
        losses = {f"loss {index}": [term.sum.detach()] for index, term in enumerate(terms)}
        sizes.append([measure(name, *tensors) for name, tensors in (parts | losses).items()])
        return terms

    step.objective = objective
    try:
        yield sizes
    finally:
        step.objective = original
