"""Process group whose processes share the weights as well (FSDP2, HSDP): each holds some rows, as DTensors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import Store

from heedful.distributed.process_group import ProcessGroup
from heedful.errors import InputError


@runtime_checkable
class Sharded(Protocol):
    """Interface of a DTensor that is split by its first dimension, over the last dimension of its device mesh."""

    device_mesh: Any
    shape: torch.Size

    def full_tensor(self) -> Tensor:
        """Gather the rows of all processes; all of them must call this."""
        ...

    def to_local(self) -> Tensor:
        """Return the rows of this process."""
        ...


@dataclass(frozen=True)
class Rows:
    """Rows of a tensor that one process holds: rows `begin` to `end` of all."""

    begin: int
    end: int
    all: int
    first_copy: bool  # True in one of the processes that hold the same rows


def whole(tensor: Tensor) -> Tensor:
    """Gather all rows of a tensor; all processes that hold some must call this. A whole tensor comes back unchanged."""
    return tensor.full_tensor() if isinstance(tensor, Sharded) else tensor


def local(tensor: Tensor) -> Tensor:
    """Return the rows of a tensor that this process holds: what is done to them in place is done to the tensor."""
    return tensor.to_local() if isinstance(tensor, Sharded) else tensor


def rows_of(tensor: Sharded) -> Rows:
    """Compute which rows of a tensor this process holds: as `torch.chunk` would split it."""
    *copy, place = tensor.device_mesh.get_coordinate()
    count = tensor.shape[0]
    size = -(-count // tensor.device_mesh.shape[-1])
    return Rows(min(place * size, count), min((place + 1) * size, count), count, not any(copy))


@torch.no_grad()
def copy_into(tensor: Tensor, value: Tensor) -> None:
    """Copy a whole value into a tensor, of which each process takes its own rows."""
    if isinstance(tensor, Sharded):
        rows = rows_of(tensor)
        value = value[rows.begin : rows.end]
    local(tensor).copy_(value)


def are_sharded(tensors: Iterable[Tensor]) -> bool:
    """True if this process holds only some rows of one of the tensors."""
    return any(isinstance(tensor, Sharded) for tensor in tensors)


T = TypeVar("T")


class ShardedGroup(ProcessGroup):
    """Reducer of processes that hold the rows of each weight together: gradients are summed in the backward pass.

    Args:
        store: Holds what the machines tell each other outside of the process group.
        seconds: The time that the others wait for a process.
        holders: The number of processes that hold a copy of the weights together; each further group of as many has
            another copy.
        device: "cpu" or "cuda".

    Raises:
        InputError: the processes cannot be divided into groups of that size.
    """

    def __init__(self, store: Store, seconds: float, holders: int, device: str) -> None:
        super().__init__(store, seconds)
        if self.world_size % holders:
            raise InputError(
                f"{self.world_size} processes cannot be divided into groups of {holders} that share the weights: "
                'choose another number of processes or parallel.shard_processes, or parallel.shard = "full"'
            )
        copies = self.world_size // holders
        self.mesh: DeviceMesh | None = (
            init_device_mesh(device, (holders,), mesh_dim_names=("shard",))
            if copies == 1
            else init_device_mesh(device, (copies, holders), mesh_dim_names=("replicate", "shard"))
        )

    @property
    def saves(self) -> bool:
        """True in every process: each writes its rows of the weights."""
        return True

    def rounds(self, items: Sequence[T]) -> list[T]:
        """Repeat the last item until there are as many for each process, since all must gather the weights equally."""
        return [*items, *[items[-1]] * (-len(items) % self.world_size)]

    def sum_gradients(self, model: nn.Module) -> None:
        """Leave the gradients unchanged: the backward pass has summed them, and given each process its rows."""
