"""Training step: one update of the weights by forward pass, backward pass, gradient clipping and optimiser step."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from itertools import count
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.config.schema import Recipe
from heedful.distributed import SINGLE_PROCESS, Reducer
from heedful.nn.named_stacks import stacks
from heedful.optim import build_optimizer, clip_gradients, learning_rate
from heedful.random_numbers import seed_of
from heedful.tasks.task import Batch
from heedful.training.mixed_precision import PRECISIONS, Objective

P = ParamSpec("P")
T = TypeVar("T")


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
    """Training step of a model: computes the gradient of an objective and updates the weights with an optimiser."""

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

        The gradient is that of (sum of losses) / (count of target tokens) over all batches of all processes, for each
        term of the loss: splitting a batch into several changes only rounding. Dropout is drawn from (seed, update,
        batch), so that no state of a random generator has to be saved.
        """
        rows = self.reducer.all_gather_in_order([(batch.tokens, *batch.counts) for batch in batches])[:total]
        tokens, *counts = (sum(column) for column in zip(*rows, strict=True))
        with passes or nullcontext():
            losses = self.gradient(batches, number, counts, len(rows))
        last = last or self.recipe.train.max_updates
        lr = learning_rate(self.recipe.optimizer, number, last, self.recipe.model.d_model)
        norm = self.step(lr, sum(counts))
        computed = self.reducer.all_gather_in_order(torch.stack(losses).tolist() if losses else [])[:total]
        totals, nlls = torch.tensor(computed, dtype=torch.float64).sum(0).T.tolist()
        return Update(totals, nlls, counts, tokens, lr, norm, math.isfinite(norm))

    def gradient(self, batches: Sequence[Batch], number: int, counts: Sequence[int], total: int) -> list[Tensor]:
        """Compute the gradient of an update, in the model's parameters; return the losses as `backward` does."""
        self.precision.replica.train()
        self.precision.refresh()
        nothing = [math.inf] * len(counts)  # divisors of a repetition
        losses = [
            self.backward(batch, (number, place), counts if place < total else nothing)
            for place, batch in zip(self.reducer.shard(count()), batches, strict=False)
        ]
        self.reducer.sum_gradients(self.model)
        return losses

    def rehearse(self, batch: Batch) -> None:
        """Compute the gradient of one batch and drop it: nothing changes, but memory has once held all of it."""
        self.precision.replica.train()
        self.precision.refresh()
        self.backward(batch, (0, 0), batch.counts)
        self.model.zero_grad(set_to_none=True)

    def backward(self, batch: Batch, key: tuple[int, int], counts: Sequence[float]) -> Tensor:
        """Add the gradient of one batch; return for each term its smoothed loss and its negative log-likelihood."""
        torch.manual_seed(seed_of(self.recipe.train.seed, *key))
        terms = self.precision.compute(self.objective, batch)
        torch.stack([term.sum / max(divisor, 1) for term, divisor in zip(terms, counts, strict=True)]).sum().backward()
        self.precision.collect()
        return torch.stack([torch.stack([term.sum.detach(), term.nll]) for term in terms])

    def step(self, lr: float, predictions: int) -> float:
        """Clip the gradient and step the optimiser, unless the gradient is not finite; return the gradient norm."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        limit = self.recipe.optimizer.clip_norm or math.inf
        norm = clip_gradients(parameters, limit)
        for group in self.optimizer.param_groups:
            group |= {"lr": lr, "count": predictions}
        if math.isfinite(norm):
            with self.whole_rows():
                self.optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return norm
