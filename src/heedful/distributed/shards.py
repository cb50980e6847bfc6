"""Sharded tensors, of which each process holds some rows: torch.distributed's DTensors, which FSDP2 makes from weights.

Every function except `rows_of` also takes whole tensors. torch.distributed.tensor, which takes seconds to import, is
not needed here.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeGuard

import torch
from torch import Tensor


class Sharded(Protocol):
    """Interface of a DTensor that is split along its first dimension over the last dimension of its device mesh."""

    device_mesh: Any
    shape: torch.Size

    def full_tensor(self) -> Tensor: ...  # gathers the rows of all processes, which must all call it

    def to_local(self) -> Tensor: ...  # the rows of this process


class Rows(NamedTuple):
    """Rows of a tensor that one process holds: `begin` (inclusive) to `end` (exclusive) of `all` rows."""

    begin: int
    end: int
    all: int
    first_copy: bool  # True in one of the processes that hold the same rows


def is_sharded(tensor: Any) -> TypeGuard[Sharded]:
    # Not isinstance: in Python 3.11, a protocol takes 0.1 ms for each parameter, and every update asks for all of them.
    return hasattr(tensor, "full_tensor")


def whole(tensor: Any) -> Tensor:
    """Gather all rows of a tensor; all processes that hold some of them must call this."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def local(tensor: Any) -> Tensor:
    """Return the rows of a tensor that this process holds, without copying them."""
    return tensor.to_local() if is_sharded(tensor) else tensor


def rows_of(tensor: Sharded) -> Rows:
    """Compute which rows of a tensor this process holds; they are split as by `torch.chunk`."""
    # With HSDP, the mesh has the shape (copies, processes per copy).
    *copy, index = tensor.device_mesh.get_coordinate()
    count = tensor.shape[0]
    size = -(-count // tensor.device_mesh.shape[-1])
    return Rows(min(index * size, count), min((index + 1) * size, count), count, not any(copy))


@torch.no_grad()
def copy_into(tensor: Tensor, value: Tensor) -> None:
    """Copy a whole tensor into one of the same shape; if that is sharded, each process copies only its rows."""
    if is_sharded(tensor):
        rows = rows_of(tensor)
        value = value[rows.begin : rows.end]
    local(tensor).copy_(value)


def any_sharded(tensors: Iterable[Tensor]) -> bool:
    return any(is_sharded(tensor) for tensor in tensors)
