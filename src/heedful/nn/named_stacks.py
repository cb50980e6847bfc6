"""Stacks of layers, as the rest of heedful sees them: what a backbone needs of one, and its names in the inspector."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor, nn

from heedful.nn.masks import AttentionMask


class BlockStack(nn.Module):
    """Base class of stacks of blocks, each of which can be compiled, sharded or computed again by itself."""

    blocks: nn.ModuleList


def stacks(model: nn.Module) -> list[BlockStack]:
    """List the stacks of blocks in a model: an encoder, a decoder or both."""
    return [module for module in model.modules() if isinstance(module, BlockStack)]


@runtime_checkable
class StackState(Protocol):
    """Interface of the cache of a stack: what it remembers of the tokens of each row during generation."""

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat rows."""
        ...


@runtime_checkable
class SequenceStack(Protocol):
    """Interface of a stack of layers of any architecture, which computes a hidden state for each embedded token."""

    def __call__(self, x: Tensor, mask: AttentionMask, cache: Any = None) -> Tensor:
        """Compute hidden states (B T D) of embedded tokens (B T D); the cache holds earlier tokens."""
        ...


@runtime_checkable
class GeneratingStack(SequenceStack, Protocol):
    """Interface of a stack of causal layers, which remembers what it has seen of earlier tokens."""

    def begin(self, rows: int) -> StackState:
        """Create the cache of rows without any token."""
        ...


class NamedStack(NamedTuple):
    """A stack of Transformer blocks: encoder or decoder."""

    name: str  # "enc" or "dec"
    sequence: str  # the text that runs through the stack: "src" or "tgt"
    stack: Any


class NamedRecurrentStack(NamedTuple):
    """A stack of recurrent layers."""

    name: str
    sequence: str
    stack: Any
    whole: nn.Module  # from embedded tokens to hidden states: the stack, or a decoder around it
    bridges: Sequence[nn.Module] = ()  # give the first state of each layer; none where it is zero
    alignment: nn.Module | None = None  # attention weights pass through it; None without attention


class NamedConvolutionalStack(NamedTuple):
    """A stack of convolutions."""

    name: str
    sequence: str
    stack: Any
    alignments: Sequence[nn.Module] = ()  # the attention weights of the layers pass through them


@runtime_checkable
class InspectableStack(Protocol):
    """Interface of a stack of layers whose tensors the inspector names."""

    def named(self, name: str, sequence: str, /) -> NamedStack | NamedRecurrentStack | NamedConvolutionalStack:
        """Name the stack: "enc" or "dec", and the text that runs through it, "src" or "tgt"."""
        ...
