"""Modules without memory for their weights, on torch's meta device, for their shapes and types."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def meta_device() -> Iterator[None]:
    """Build modules on the meta device in this context, without initialising their weights.

    `torch.device("meta")` alone calls the initialisation, and for normal distributions first loads torch's compiler,
    which takes a second or two.
    """
    with torch.device("meta"), _Undrawn():
        yield


@contextmanager
def unallocated() -> Iterator[None]:
    """Build modules whose weights have no memory in this context; computed tables are on the CPU.

    On the meta device, torch's compiler would also compute these tables.
    """
    with _Undrawn(empty="meta"):
        yield


_DRAWS = {  # functions of the initialisation that can be overridden
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.constant_,
    nn.init.kaiming_uniform_,
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
}


class _Undrawn(TorchFunctionMode):
    """Mode in which initialisation does nothing, and `torch.empty` creates tensors on the device `empty`, if any."""

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
        # Functions of the initialisation return their tensor.
        if func in _DRAWS:
            return keywords.get("tensor", next(iter(args), None))
        if self.empty and func is torch.empty:
            keywords["device"] = self.empty
        return func(*args, **keywords)
