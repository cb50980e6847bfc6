"""Training step: one update of the weights by forward pass, backward pass, gradient clipping and optimiser step.

- The loss is a sum divided by a count over all batches of all processes, so that accumulation and data parallelism
  change nothing but rounding.
- Dropout is drawn from (seed, update, batch): there is no state of a random generator to save or restore.
- Weights, gradients and optimiser state are float32 in every precision. What computes is the `replica` of a
  `Precision`: the model itself, or a copy in bfloat16.
"""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from itertools import count
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.config.schema import Recipe
from heedful.distributed import SINGLE_PROCESS, Reducer
from heedful.losses import Loss
from heedful.nn.named_stacks import stacks
from heedful.optim import build_optimizer, clip_gradients, learning_rate
from heedful.random_numbers import seed_of
from heedful.tasks.task import Batch

P = ParamSpec("P")
T = TypeVar("T")
Objective = Callable[[Any, Any], Sequence[Loss]]  # the terms of the loss of a model on a batch


@dataclass(frozen=True)
class Update:
    """Result of one update, over all processes: its losses, token counts, learning rate and gradient norm."""

    losses: list[float]  # sums of each term of the loss over all its batches, in nats
    nlls: list[float]
    counts: list[int]
    tokens: int
    lr: float
    norm: float  # of the gradient before clipping
    finite: bool  # False: the gradient was not finite, and the weights were left unchanged


class TrainingStep:
    """Training step of a model: computes the gradient of an objective and updates the weights with an optimiser.

    Args:
        model: The model, in float32.
        objective: Computes the terms of the loss of a batch.
        recipe: The recipe of the run.
        reducer: Joins counts and losses, and sums gradients, of all processes that train the model.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, recipe: Recipe, reducer: Reducer = SINGLE_PROCESS
    ) -> None:
        self.model = model
        self.objective = objective
        self.recipe = recipe
        self.reducer = reducer
        if reducer.mesh is None:
            self.precision = PRECISIONS[recipe.train.precision](model)
            self.optimizer = build_optimizer(recipe.optimizer, model, self.precision.dtype)
            self.whole_rows = nullcontext
        else:
            from heedful.training.sharding import ShardedWeights, UnevenShards

            self.precision = ShardedWeights(model, reducer.mesh, recipe.train.precision)
            self.optimizer = build_optimizer(recipe.optimizer, model, self.precision.dtype)
            self.whole_rows = UnevenShards(self.optimizer).gathered
        if recipe.train.activation_checkpointing:
            checkpoint_activations(self.precision.replica)
        if recipe.train.compile:
            for stack in stacks(self.precision.replica):
                stack.compile(dynamic=True)

    def update(
        self,
        batches: Sequence[Batch],
        number: int,
        total: int | None = None,
        last: int | float | None = None,
        passes: AbstractContextManager[object] | None = None,
    ) -> Update:
        """Perform update `number`, counted from 1, with the gradient of all `batches` together (gradient accumulation).

        Args:
            batches: This process's batches; none, if all examples are those of other processes.
            number: The number of the update.
            total: The number of batches of all processes; those beyond are repetitions, which count for nothing.
            last: The update with which the run ends, perhaps estimated; None: `train.max_updates`.
            passes: Context manager of the passes, which change no weight; None: none is needed.
        """
        # Count first: each loss is divided by the number of targets in all batches of all processes.
        rows = self.reducer.all_gather_in_order([(batch.tokens, *batch.counts) for batch in batches])[:total]
        tokens, *counts = (sum(column) for column in zip(*rows, strict=True))
        with passes or nullcontext():
            losses = self.gradient(batches, number, counts, len(rows))
        lr = learning_rate(
            self.recipe.optimizer, number, last or self.recipe.train.max_updates, self.recipe.model.d_model
        )
        norm = self.step(lr, sum(counts))

        # Only now are losses copied from the device: within the passes that would wait for it after each batch.
        sums = self.reducer.all_gather_in_order(torch.stack(losses).tolist() if losses else [])[:total]
        totals, nlls = torch.tensor(sums, dtype=torch.float64).sum(0).T.tolist()  # (batch, term, 2) -> 2 x (term,)
        return Update(totals, nlls, counts, tokens, lr, norm, math.isfinite(norm))

    def gradient(self, batches: Sequence[Batch], number: int, counts: Sequence[int], total: int) -> list[Tensor]:
        """Compute the gradient of an update, in the model's parameters; return the losses as `backward` does.

        Args:
            batches: This process's batches.
            number: The number of the update.
            counts: The divisor of each term of the loss, over all batches of all processes.
            total: The number of batches of all processes, without repetitions.
        """
        self.precision.replica.train()
        self.precision.refresh()
        repetition = [math.inf] * len(counts)  # divided by infinity, what is computed again adds zeros
        losses = [
            self.backward(batch, (number, place), counts if place < total else repetition)
            for place, batch in zip(self.reducer.shard(count()), batches, strict=False)
        ]
        self.reducer.sum_gradients(self.model)
        return losses

    def backward(self, batch: Batch, key: tuple[int, int], counts: Sequence[float]) -> Tensor:
        """Add the gradient of one batch; return for each term its smoothed loss and its negative log-likelihood."""
        torch.manual_seed(seed_of(self.recipe.train.seed, *key))
        terms = self.precision.compute(self.objective, batch)
        torch.stack([term.sum / max(divisor, 1) for term, divisor in zip(terms, counts, strict=True)]).sum().backward()
        self.precision.collect()
        return torch.stack([torch.stack([term.sum.detach(), term.nll]) for term in terms])

    def step(self, lr: float, predictions: int) -> float:
        """Clip the gradient, the mean over `predictions`, and step the optimiser; return the norm before clipping."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        norm = clip_gradients(parameters, self.recipe.optimizer.clip_norm or math.inf)
        for group in self.optimizer.param_groups:
            group |= {"lr": lr, "count": predictions}
        if math.isfinite(norm):  # else one bad batch would spoil all weights, and the next checkpoint
            with self.whole_rows():
                self.optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return norm

    def rehearse(self, batch: Batch) -> None:
        """Compute the gradient of one batch and drop it: nothing changes, but memory has once held all of it."""
        self.precision.replica.train()
        self.precision.refresh()
        self.backward(batch, (0, 0), batch.counts)
        self.model.zero_grad(set_to_none=True)


class Precision:
    """Number formats of a training step; this one is float32, in which the model itself computes.

    Before an update `refresh` copies the current weights to the replica, `compute` runs the forward pass, and after
    each backward pass `collect` adds the gradients of the replica to the model's.
    """

    dtype = torch.float32  # of matrix products

    def __init__(self, model: nn.Module) -> None:
        self.replica = model

    def refresh(self) -> None:
        """There is only one set of weights."""

    def context(self) -> AbstractContextManager:
        return nullcontext()

    def compute(self, objective: Objective, batch: Any) -> Sequence[Loss]:
        with self.context():
            return objective(self.replica, batch)

    def collect(self) -> None:
        """The gradients are in the model already."""


class Autocast(Precision):
    """Precision of torch.autocast: the model's matrix products are computed in bfloat16."""

    dtype = torch.bfloat16

    def context(self) -> AbstractContextManager:
        return torch.autocast(next(self.replica.parameters()).device.type, torch.bfloat16)


class MasterWeights(Precision):
    """Precision of float32 master weights and a bfloat16 copy that computes (Micikevicius et al. 2018)."""

    dtype = torch.bfloat16

    def __init__(self, model: nn.Module) -> None:
        super().__init__(copy.deepcopy(model).bfloat16())
        # those that are frozen, too: a run that resumes has them from its checkpoint
        self.masters, self.copies = list(model.parameters()), list(self.replica.parameters())

    @torch.no_grad()
    def refresh(self) -> None:
        for half, master in zip(self.copies, self.masters, strict=True):
            half.copy_(master)

    @torch.no_grad()
    def collect(self) -> None:
        # Gradients are accumulated in float32: sums in bfloat16 would lose those of later batches.
        for master, half in zip(self.masters, self.copies, strict=True):
            if half.grad is None:
                continue
            if master.grad is None:
                master.grad = half.grad.float()
            else:
                master.grad += half.grad
            half.grad = None


PRECISIONS: dict[str, type[Precision]] = {
    "float32": Precision,
    "bfloat16": MasterWeights,
    "autocast": Autocast,
}


def checkpoint_activations(model: nn.Module) -> None:
    """Let each block of a model's stacks keep its inputs only, and compute the rest again, with the same dropout."""
    for stack in stacks(model):
        for block in stack.blocks:
            block.forward = recomputed(block.forward)


def recomputed(forward: Callable[P, T]) -> Callable[P, T]:
    """Make a forward pass that keeps only its inputs where a gradient is wanted."""

    @wraps(forward)
    def recomputing(*args: P.args, **kwargs: P.kwargs) -> T:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    return recomputing
