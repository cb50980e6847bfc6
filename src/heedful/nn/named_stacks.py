"""Stacks of layers under the names by which the inspector calls them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn


class NamedStack(NamedTuple):
    """A stack of Transformer blocks.

    Attributes:
        name: "enc" or "dec".
        sequence: the text that runs through the stack: "src" or "tgt".
        stack: the encoder or decoder, a `heedful.nn.stack.Stack` or `Decoder`.
    """

    name: str
    sequence: str
    stack: Any


class NamedRecurrentStack(NamedTuple):
    """A stack of recurrent layers.

    Attributes:
        name: "enc" or "dec".
        sequence: the text that runs through the stack: "src" or "tgt".
        stack: the layers, a `heedful.architectures.recurrent.layers.RecurrentStack`.
        whole: the module that takes embedded tokens and gives the hidden states: the stack, or a decoder around it.
        bridges: the modules that give the first state of each layer; none where it is zero.
        alignment: the module that attention weights pass through; None without attention.
    """

    name: str
    sequence: str
    stack: Any
    whole: nn.Module
    bridges: Sequence[nn.Module] = ()
    alignment: nn.Module | None = None


class NamedConvolutionalStack(NamedTuple):
    """A stack of convolutions.

    Attributes:
        name: "enc" or "dec".
        sequence: the text that runs through the stack: "src" or "tgt".
        stack: the layers, a `heedful.architectures.convolutional.layers.ConvolutionalStack`.
        alignments: the modules that the attention weights of the layers pass through; none without attention.
    """

    name: str
    sequence: str
    stack: Any
    alignments: Sequence[nn.Module] = ()


@runtime_checkable
class InspectableStack(Protocol):
    """Interface of a stack of layers whose tensors the inspector names."""

    def named(self, name: str, sequence: str, /) -> NamedStack | NamedRecurrentStack | NamedConvolutionalStack:
        """Name the stack: "enc" or "dec", and the text that runs through it, "src" or "tgt"."""
        ...
