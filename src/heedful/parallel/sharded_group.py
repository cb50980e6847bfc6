"""Process group whose processes share the weights as well (FSDP2, HSDP), and not only the batches."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import Store

from heedful.config.schema import ParallelConfig
from heedful.errors import InputError
from heedful.parallel.process_group import ProcessGroup
from heedful.parallel.reducer import Reducer

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


def kind_of_group(config: ParallelConfig, device: str) -> Callable[[Store, float], Reducer]:
    """Choose what makes the reducer of several processes: one that shares the weights, if the recipe says so.

    Args:
        config: the recipe's table.
        device: the device that the recipe names.
    """
    if config.shard == "none":
        return ProcessGroup
    mesh_device = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"

    def sharded(store: Store, seconds: float) -> Reducer:
        together = int(os.environ["WORLD_SIZE" if config.shard == "full" else "LOCAL_WORLD_SIZE"])
        return ShardedGroup(store, seconds, config.shard_processes or together, mesh_device)

    return sharded
