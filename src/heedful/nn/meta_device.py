"""Modules on torch's device "meta": with shapes and types, and without memory for their weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def meta_device() -> Iterator[None]:
    """Build modules on the device "meta" in this context, and leave their weights undrawn.

    `torch.device("meta")` alone would draw them, though there are none; for normal ones it first loads torch's
    compiler, which takes a second or two.
    """
    with torch.device("meta"), _Undrawn():
        yield


@contextmanager
def unallocated() -> Iterator[None]:
    """Build modules whose weights have no memory in this context; tables that are computed have, on the CPU.

    For whoever asks for the shapes of weights only: on the device "meta" tables too would be computed by torch's
    compiler.
    """
    with _Undrawn(empty="meta"):
        yield


_DRAWS = {  # all that can be overridden
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.constant_,
    nn.init.kaiming_uniform_,
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
}


class _Undrawn(TorchFunctionMode):
    """Mode in which functions that draw weights leave them as they are.

    Tensors without values, as weights are at first, are created on the device `empty`, if one is named.
    """

    def __init__(self, empty: str | None = None) -> None:
        super().__init__()
        self.empty = empty

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        keywords = dict(kwargs or {})
        # A function that draws returns the tensor that it was given, drawn or not.
        if func in _DRAWS:
            return keywords.get("tensor", next(iter(args), None))
        if self.empty and func is torch.empty:
            keywords["device"] = self.empty
        return func(*args, **keywords)
