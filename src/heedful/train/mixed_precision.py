"""In which numbers a step is computed. The weights, their gradients and the optimiser are float32 always.

Each precision has a `replica` of the model that does the work. Before an update `refresh` brings its weights up to
date, the forward pass runs in `context()`, and after each backward pass `collect` adds its gradients to the model's.
"""

import copy
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn


class Float32:
    """The model itself."""

    dtype = torch.float32  # of matrix products

    def __init__(self, model: nn.Module) -> None:
        self.replica = model

    def refresh(self) -> None:
        """Nothing to do: there is one set of weights."""

    def context(self) -> AbstractContextManager:
        """Plain arithmetic."""
        return nullcontext()

    def collect(self) -> None:
        """Nothing to do: the gradients are where they belong."""


class Autocast(Float32):
    """The model itself, its matrix products in bfloat16."""

    dtype = torch.bfloat16

    def context(self) -> AbstractContextManager:
        """Torch's own choice of types."""
        return torch.autocast(next(self.replica.parameters()).device.type, torch.bfloat16)


class MasterWeights:
    """A bfloat16 copy does the work; the float32 master weights take the step (Micikevicius et al. 2018)."""

    dtype = torch.bfloat16

    def __init__(self, model: nn.Module) -> None:
        self.replica = copy.deepcopy(model).bfloat16()
        self.masters = [p for p in model.parameters() if p.requires_grad]
        self.copies = [p for p in self.replica.parameters() if p.requires_grad]

    @torch.no_grad()
    def refresh(self) -> None:
        """Round the master weights into the copy."""
        for half, master in zip(self.copies, self.masters, strict=True):
            half.copy_(master)

    def context(self) -> AbstractContextManager:
        """Plain arithmetic: the copy's own type decides."""
        return nullcontext()

    @torch.no_grad()
    def collect(self) -> None:
        """Add up in float32, so that accumulation loses nothing."""
        for master, half in zip(self.masters, self.copies, strict=True):
            if half.grad is None:
                continue
            if master.grad is None:
                master.grad = half.grad.float()
            else:
                master.grad += half.grad
            half.grad = None


PRECISIONS: dict[str, type[Float32] | type[Autocast] | type[MasterWeights]] = {
    "float32": Float32,
    "bfloat16": MasterWeights,
    "autocast": Autocast,
}
