"""Stacks of layers, and the names under which the inspector records them.

A stack is a module that computes hidden states (B T D) from embedded tokens (B T D): `stack(x, mask, cache)`. If it is
causal, its method `begin(rows)` creates the cache for generation, whose method `select(rows)` keeps, reorders or
repeats rows. If the inspector can record it, its method `named(name, sequence)` returns one of the tuples below.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import nn


class BlockStack(nn.Module):
    """Base class of stacks of blocks, which are compiled, sharded and recomputed one by one.

    Attributes:
        weighs_all: True if self-attention computes the weights of all queries and keys, even where `model.window` or
            linear attention does without: the inspector sets it, to record them.
    """

    blocks: nn.ModuleList
    weighs_all: bool = False


def stacks(model: nn.Module) -> list[BlockStack]:
    """List the stacks of blocks in a model: encoder, decoder or both."""
    return [module for module in model.modules() if isinstance(module, BlockStack)]


class NamedStack(NamedTuple):
    """Stack of Transformer blocks."""

    name: str  # "enc" or "dec"
    sequence: str  # the input of the stack: "src" or "tgt"
    stack: Any


class NamedRecurrentStack(NamedTuple):
    """Stack of recurrent layers."""

    name: str
    sequence: str
    stack: Any
    whole: nn.Module  # from embedded tokens to hidden states: the stack, or a decoder around it
    bridges: Sequence[nn.Module] = ()  # compute the initial state of each layer; empty if it is zero
    alignment: nn.Module | None = None  # attention weights pass through it; None without attention


class NamedConvolutionalStack(NamedTuple):
    """Stack of convolutions."""

    name: str
    sequence: str
    stack: Any
    alignments: Sequence[nn.Module] = ()  # the attention weights of the layers pass through them
