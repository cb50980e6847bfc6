"""Training step: one update of the weights, by forward pass, backward pass, gradient clipping and optimizer step.

- The loss is a sum divided by a count over all batches of all processes, so that gradient accumulation and data
  parallelism change nothing but rounding.
- Dropout is a function of (seed, update, batch), so a checkpoint need not store the state of a random generator.
- Weights, gradients and optimizer state are float32 in every precision. The computation uses the `replica` of a
  `Precision`: the model itself, or a copy in bfloat16. In float16 the loss is multiplied by a `LossScale`.
"""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial, wraps
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.config.schema import Recipe, TransformerSettings
from heedful.distributed.reducer import SINGLE_PROCESS, Reducer
from heedful.losses import Loss
from heedful.nn.named_stacks import stacks
from heedful.optim import build_optimizer, clip_gradients
from heedful.random_numbers import seed_of
from heedful.tasks.task import Batch
from heedful.training.learning_rate import learning_rate
from heedful.training.loss_scale import LossScale

Objective = Callable[[Any, Any], Sequence[Loss]]  # (model, batch) -> the terms of the loss


@dataclass(frozen=True)
class Update:
    """Result of one update, over all processes."""

    losses: list[float]  # for each term of the loss, its sum over all batches, in nats
    nlls: list[float]  # the same sums without label smoothing
    counts: list[int]  # the number of predictions in each sum
    tokens: int
    lr: float
    norm: float  # of the gradient before clipping
    finite: bool  # False: the gradient was not finite, and the weights are unchanged
    loss_scale: LossScale | None = None  # of the next update; None except in float16


class TrainingStep:
    """Training step: computes the gradient of an objective, and updates the weights of a model with an optimizer.

    Args:
        model: The model, in float32.
        objective: Computes the terms of the loss of a batch.
        recipe: The recipe of the run.
        reducer: Adds up counts, losses and gradients over the processes that train the model.

    Attributes:
        loss_scale: The factor for the loss in float16, which a resumed run restores; None in other precisions.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, recipe: Recipe, reducer: Reducer = SINGLE_PROCESS
    ) -> None:
        self.model = model
        self.recipe = recipe
        self.balances_experts = recipe.train.expert_balance > 0 and has_experts(recipe)
        self.objective = self.balanced(objective) if self.balances_experts else objective
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
        # Row-wise gradients are summed after the backward pass, since only then are their rows known.
        self.sums = None if recipe.optimizer.name == "row_sgd" else reducer.gradient_sums(model)
        if self.sums is not None:
            self.precision.watch(self.sums.finish)
        self.loss_scale = LossScale() if self.precision.autocast == torch.float16 else None
        # Compile first: the wrapper for recomputation must call the compiled code, and not be compiled itself.
        if recipe.train.compile:
            compile_blocks(self.precision.replica)
        if recipe.train.activation_checkpointing:
            checkpoint_activations(self.precision.replica)

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
            batches: The batches of this process; may be empty if other processes have some.
            number: The number of the update.
            total: The number of batches of all processes, without padding; None: there is no padding.
            last: The update with which the run ends, perhaps estimated; None: `train.max_updates`.
            passes: Context manager around forward and backward passes, which change no weights.
        """
        # Count first: each term of the loss is divided by its number of targets in all batches of all processes.
        rows = self.reducer.all_gather_in_order([(batch.tokens, *batch.counts) for batch in batches])[:total]
        tokens, *counts = (sum(column) for column in zip(*rows, strict=True))

        # Forward and backward pass of each batch; the gradients add up in the model's parameters.
        with passes or nullcontext():
            losses = self.gradient(batches, number, self.divisors(counts, tokens), len(rows))

        lr = learning_rate(
            self.recipe.optimizer, number, last or self.recipe.train.max_updates, self.recipe.model.d_model
        )
        norm = self.step(lr, sum(counts))

        # Losses are copied from the device last, because a copy waits until the device has computed them.
        sums = self.reducer.all_gather_in_order(torch.stack(losses).tolist() if losses else [])[:total]
        totals, nlls = torch.tensor(sums, dtype=torch.float64).sum(0).T.tolist()  # (batch, term, 2) -> 2 x (term,)
        return Update(totals, nlls, counts, tokens, lr, norm, math.isfinite(norm), self.loss_scale)

    def balanced(self, objective: Objective) -> Objective:
        """Add the balance of experts, weighted as in the recipe, to the terms of an objective."""
        from heedful.training.expert_balance import balanced  # imported only for models with experts

        return balanced(objective, self.recipe.train.expert_balance)

    def divisors(self, counts: Sequence[int], tokens: int) -> Sequence[int]:
        """Return the divisor of each term of the objective: that of the experts' balance, the last one, is `tokens`."""
        return (*counts, tokens) if self.balances_experts else counts

    def gradient(self, batches: Sequence[Batch], number: int, counts: Sequence[int], total: int) -> list[Tensor]:
        """Add the gradient of update `number` to the model's parameters; return what `backward` returns for each batch.

        Args:
            batches: The batches of this process.
            number: The number of the update.
            counts: The divisor of each term of the loss, over all batches of all processes.
            total: The number of batches of all processes, without padding.
        """
        # A validation or a callback may have switched the model to evaluation mode.
        self.precision.replica.train()
        self.precision.refresh()
        before = self.loss_scale
        while True:
            losses = self.passes(batches, number, counts, total)
            if self.loss_scale is None or all(self.reducer.all_gather(self.loss_scale.unscale(self.model))):
                break
            # In float16, a gradient that is not finite is computed again with half the factor. If it is not finite even
            # with a factor of 1, the factor is not the cause, and `step` skips the update.
            self.loss_scale = self.loss_scale.lowered()
            if self.loss_scale is None:
                self.loss_scale = before
                return losses
            self.model.zero_grad(set_to_none=True)
        self.loss_scale = self.loss_scale and self.loss_scale.after_update()
        return losses

    def passes(self, batches: Sequence[Batch], number: int, counts: Sequence[int], total: int) -> list[Tensor]:
        """Run the forward and backward pass of each batch, and sum the gradients of all processes."""
        padding = [math.inf] * len(counts)  # a loss divided by infinity adds a gradient of zeros
        losses = []
        # Batches are numbered across all processes, so that dropout does not depend on the number of processes.
        for index, batch in zip(self.reducer.shard(count()), batches, strict=False):
            if self.sums is not None:
                # Only the last backward pass completes the gradients, which can then be summed in the background.
                self.sums.is_last_pass = len(losses) == len(batches) - 1
            losses.append(self.backward(batch, (number, index), counts if index < total else padding))
        self.reducer.sum_gradients(self.model, self.sums)
        return losses

    def backward(self, batch: Batch, key: tuple[int, int], counts: Sequence[float]) -> Tensor:
        """Add the gradient of one batch; return each term's smoothed loss and negative log-likelihood: (term, 2).

        `key` is the number of the update and the index of the batch in it, which determine dropout.
        """
        torch.manual_seed(seed_of(self.recipe.train.seed, *key))
        terms = self.precision.compute(self.objective, batch)
        # An update may have nothing to predict for a term, whose count and sum are then 0.
        loss = torch.stack([term.sum / max(divisor, 1) for term, divisor in zip(terms, counts, strict=True)]).sum()
        (loss if self.loss_scale is None else self.loss_scale.factor * loss).backward()
        self.precision.collect()
        return torch.stack([torch.stack([term.sum.detach(), term.nll]) for term in terms[: len(batch.counts)]])

    def step(self, lr: float, predictions: int) -> float:
        """Clip the gradient, a mean over `predictions`, and apply it if finite; return its norm before clipping."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        # The norm is computed even without a limit: it is logged, and shows whether the gradient is finite.
        norm = clip_gradients(parameters, self.recipe.optimizer.clip_norm or math.inf)
        for group in self.optimizer.param_groups:
            # `RowSGD` multiplies lr, the rate of a single prediction, by the number of predictions.
            group |= {"lr": lr, "count": predictions}
        if math.isfinite(norm):  # otherwise one bad batch would spoil all weights, and the next checkpoint
            with self.whole_rows():
                self.optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return norm

    def rehearse(self, batch: Batch) -> None:
        """Compute the gradient of one batch and discard it, to find out whether it fits into memory."""
        self.precision.replica.train()
        self.precision.refresh()
        self.backward(batch, (0, 0), self.divisors(batch.counts, batch.tokens))
        self.model.zero_grad(set_to_none=True)


class Precision:
    """Number formats of a training step; the base class uses float32, and its replica is the model itself.

    `refresh` copies the current weights to the replica before an update, `compute` runs the forward pass, and `collect`
    adds the gradients of the replica to the model's after each backward pass.
    """

    dtype = torch.float32  # of the optimizer's matrix multiplications
    autocast: torch.dtype | None = None  # of the model's matrix multiplications under torch.autocast; None: no autocast

    def __init__(self, model: nn.Module) -> None:
        self.replica = model

    def refresh(self) -> None:
        """Do nothing: the replica is the model."""

    def context(self) -> AbstractContextManager:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(next(self.replica.parameters()).device.type, self.autocast)

    def compute(self, objective: Objective, batch: Any) -> Sequence[Loss]:
        with self.context():
            return objective(self.replica, batch)

    def collect(self) -> None:
        """Do nothing: the replica is the model."""

    def watch(self, finish: Callable[[nn.Parameter], None]) -> None:
        """Call `finish` with each parameter of the model as soon as a backward pass has added its gradient."""
        for parameter in self.replica.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(finish)


class Autocast(Precision):
    """Precision of torch.autocast: the model's matrix multiplications use bfloat16."""

    dtype = autocast = torch.bfloat16


class Float16(Precision):
    """Precision of torch.autocast in float16, for GPUs without bfloat16; the loss is scaled."""

    autocast = torch.float16


class MasterWeights(Precision):
    """Precision with float32 master weights and a bfloat16 copy for computation (Micikevicius et al. 2018)."""

    dtype = torch.bfloat16

    def __init__(self, model: nn.Module) -> None:
        super().__init__(copy.deepcopy(model).bfloat16())
        # Frozen weights are refreshed as well, because a resumed run loads them from its checkpoint after this copy.
        self.masters, self.copies = list(model.parameters()), list(self.replica.parameters())

    @torch.no_grad()
    def refresh(self) -> None:
        for half, master in zip(self.copies, self.masters, strict=True):
            half.copy_(master)

    def collect(self) -> None:
        for master, half in zip(self.masters, self.copies, strict=True):
            self.collect_one(master, half)

    @torch.no_grad()
    def collect_one(self, master: nn.Parameter, half: nn.Parameter) -> None:
        # Gradients are accumulated in float32: in bfloat16, those of later batches would be rounded away.
        if half.grad is None:
            return
        if master.grad is None:
            master.grad = half.grad.float()
        else:
            master.grad += half.grad
        half.grad = None

    def watch(self, finish: Callable[[nn.Parameter], None]) -> None:
        for master, half in zip(self.masters, self.copies, strict=True):

            def finish_master(half: nn.Parameter, master: nn.Parameter = master) -> None:
                self.collect_one(master, half)
                finish(master)

            if half.requires_grad:
                half.register_post_accumulate_grad_hook(finish_master)


PRECISIONS: dict[str, type[Precision]] = {
    "float32": Precision,
    "bfloat16": MasterWeights,
    "autocast": Autocast,
    "float16": Float16,
}


def has_experts(recipe: Recipe) -> bool:
    return isinstance(recipe.model, TransformerSettings) and recipe.model.feed_forward == "experts"


def compile_blocks(model: nn.Module) -> None:
    """Compile each block of a model's stacks with `torch.compile` for training.

    All blocks of a kind share their compiled code. Sharded weights are gathered, and blocks recomputed, outside of it.
    """
    wrap_blocks(model, lambda forward: torch.compile(forward, dynamic=True))


def checkpoint_activations(model: nn.Module) -> None:
    """Make each block of a model's stacks store only its inputs, and recompute the rest with the same dropout."""
    wrap_blocks(model, lambda forward: partial(checkpoint, forward, use_reentrant=False))


def wrap_blocks(model: nn.Module, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Wrap the forward pass of each block of a model's stacks; without gradients, the original one is called."""

    def wrapped(forward: Callable[..., Any]) -> Callable[..., Any]:
        in_training = wrapper(forward)

        @wraps(forward)
        def choosing(*args: Any, **kwargs: Any) -> Any:
            return (in_training if torch.is_grad_enabled() else forward)(*args, **kwargs)

        return choosing

    for stack in stacks(model):
        for block in stack.blocks:
            block.forward = wrapped(block.forward)
