"""Process group whose processes share the weights as well (FSDP2, HSDP), and not only the batches."""

from collections.abc import Sequence
from typing import TypeVar

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import Store

from heedful.distributed.process_group import ProcessGroup
from heedful.errors import InputError

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
