"""Mixed precision: the number formats of a training step. Weights, gradients and optimiser state are always float32.

Each precision has a `replica` of the model, which computes. Before an update `refresh` copies the current weights to
it, `compute` runs the forward pass, and after each backward pass `collect` adds its gradients to the model's.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from heedful.losses import Loss

Objective = Callable[[Any, Any], Sequence[Loss]]  # the terms of the loss of a model on a batch


class Float32:
    """Training in float32: the model itself computes."""

    dtype = torch.float32  # of matrix products

    def __init__(self, model: nn.Module) -> None:
        self.replica = model

    def refresh(self) -> None:
        """Do nothing before an update: there is only one set of weights."""

    def context(self) -> AbstractContextManager:
        """Context of the forward pass, without any change of number formats."""
        return nullcontext()

    def compute(self, objective: Objective, batch: Any) -> Sequence[Loss]:
        """Compute the terms of the loss of a batch."""
        with self.context():
            return objective(self.replica, batch)

    def collect(self) -> None:
        """Do nothing after a backward pass: the gradients are in the model already."""


class Autocast(Float32):
    """Training with torch.autocast: the model's matrix products are computed in bfloat16."""

    dtype = torch.bfloat16

    def context(self) -> AbstractContextManager:
        """Context of the forward pass: torch.autocast to bfloat16."""
        return torch.autocast(next(self.replica.parameters()).device.type, torch.bfloat16)


class MasterWeights(Float32):
    """Training with float32 master weights and a bfloat16 copy that computes (Micikevicius et al. 2018)."""

    dtype = torch.bfloat16

    def __init__(self, model: nn.Module) -> None:
        super().__init__(copy.deepcopy(model).bfloat16())
        # those that are frozen, too: a run that goes on has them from its checkpoint
        self.masters, self.copies = list(model.parameters()), list(self.replica.parameters())

    @torch.no_grad()
    def refresh(self) -> None:
        """Round the float32 master weights into the bfloat16 copy."""
        for half, master in zip(self.copies, self.masters, strict=True):
            half.copy_(master)

    @torch.no_grad()
    def collect(self) -> None:
        """Add the bfloat16 copy's gradients to those of the master weights in float32, for exact accumulation."""
        for master, half in zip(self.masters, self.copies, strict=True):
            if half.grad is None:
                continue
            if master.grad is None:
                master.grad = half.grad.float()
            else:
                master.grad += half.grad
            half.grad = None


PRECISIONS: dict[str, type[Float32]] = {
    "float32": Float32,
    "bfloat16": MasterWeights,
    "autocast": Autocast,
}
