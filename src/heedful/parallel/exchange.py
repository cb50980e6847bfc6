"""Exchange of JSON values between the processes of a group of torch.distributed."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")


class GroupExchange:
    """Exchange of JSON values between the processes of a group of torch.distributed.

    Args:
        group: The process group; None: the default one, of all processes.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)

    @property
    def is_first(self) -> bool:
        """True in the process of rank 0."""
        return self.rank == 0

    def gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""
        text = as_bytes(value)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world_size)]
        dist.all_gather(sizes, torch.tensor([len(text)]), self.group)
        longest = max(int(size) for size in sizes)
        parts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
        dist.all_gather(parts, torch.nn.functional.pad(text, (0, longest - len(text))), self.group)
        return [from_bytes(part[: int(size)]) for part, size in zip(parts, sizes, strict=True)]

    def from_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process only, and give its JSON value to all processes."""
        text = as_bytes(function()) if self.is_first else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor([len(text)])
        dist.broadcast(size, 0, self.group)
        told = text if self.is_first else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(told, 0, self.group)
        return from_bytes(told)


def as_bytes(value: Any) -> Tensor:
    """Encode a JSON value as a tensor of bytes; numbers come back to the last bit, NaN too."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def from_bytes(text: Tensor) -> Any:
    """Decode a JSON value from a tensor of bytes."""
    return json.loads(text.numpy().tobytes())
