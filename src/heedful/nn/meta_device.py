"""Modules on torch's meta device: their weights have shapes and types, but no memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def meta_device() -> Iterator[None]:
    """Create a context in which modules are built on the meta device, without initialising their weights.

    `torch.device("meta")` alone still calls the initialisation, and for normal distributions first loads torch's
    compiler, which takes a second or two.
    """
    with torch.device("meta"), _NoInitialisation():
        yield


@contextmanager
def unallocated() -> Iterator[None]:
    """Create a context in which modules are built without allocating weights; computed tables are on the CPU.

    Computing these tables on the meta device would first load torch's compiler.
    """
    with _NoInitialisation(empty="meta"):
        yield


_INITIALISERS = {  # initialisation functions that a torch function mode can override
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.constant_,
    nn.init.kaiming_uniform_,
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
}


class _NoInitialisation(TorchFunctionMode):
    """Mode in which initialisation functions do nothing, and `torch.empty` uses the device `empty` if it is given."""

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
        # Initialisation functions return their tensor.
        if func in _INITIALISERS:
            return keywords.get("tensor", next(iter(args), None))
        if self.empty and func is torch.empty:
            keywords["device"] = self.empty
        return func(*args, **keywords)
