"""Activation checkpointing (Chen et al. 2016): blocks are computed again in the backward pass, to save memory."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from heedful.nn.stack import stacks

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
