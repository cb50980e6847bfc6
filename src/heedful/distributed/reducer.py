"""Reducer: what one process of a training does with the others (data parallelism), and what it is to a single one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

T = TypeVar("T")


class Exchange(Protocol):
    """Exchange of JSON values between processes, of which all call the same methods in the same order."""

    rank: int
    world_size: int

    def all_gather(self, value: Any) -> list[Any]: ...

    def broadcast_object(self, function: Callable[[], T]) -> T: ...


class Reducer(ABC):
    """Reducer of a process: chooses which part of the work is its own, and sums what all processes computed.

    All processes call the same methods in the same order, and get the same results.

    Attributes:
        rank: The number of this process, from 0 to `world_size` - 1.
        world_size: The number of processes.
        mesh: The device mesh over which the weights are sharded; None: each process has all weights.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self.mesh: DeviceMesh | None = None

    @property
    def is_rank_zero(self) -> bool:
        """True in the process that writes the files of the run and prints."""
        return self.rank == 0

    @property
    def saves(self) -> bool:
        """True in a process that writes a part of each checkpoint."""
        return self.is_rank_zero

    def pad_to_world_size(self, items: Sequence[T]) -> list[T]:
        """List the items of one update, with repetitions at the end if every process needs as many as the others."""
        return list(items)

    def shard(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over the items of this process: every `world_size`-th, beginning at its rank."""
        return islice(items, self.rank, None, self.world_size)

    @abstractmethod
    def all_gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""

    def all_gather_in_order(self, own: Sequence[T]) -> list[T]:
        """Collect what all processes made of their items, JSON values, in the order of the items before `shard`.

        Sums over the result do not depend on the number of processes.
        """
        lists = self.all_gather(list(own))
        return [one[place] for place in range(len(lists[0])) for one in lists if place < len(one)]

    @abstractmethod
    def broadcast_object(self, function: Callable[[], T]) -> T:
        """Call a function in the process of rank zero only, and give its JSON value to all processes."""

    @abstractmethod
    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Give the tensors of rank zero to all; what the others pass is left unread."""

    @abstractmethod
    def rank_zero_first(self, function: Callable[[], T]) -> T:
        """Call a function in the process of rank zero, then in one process of each other machine, then in all others.

        So what the first call writes is there for the others to read.
        """

    @abstractmethod
    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradient of each parameter over all processes, in place.

        A gradient that is None in some processes counts as zeros there; one that is None in all of them stays None.
        """

    @abstractmethod
    def for_a_thread(self) -> Exchange:
        """Make an exchange between the same processes for another thread; all processes must call this."""


class SingleProcess(Reducer):
    """Reducer of a training in a single process: all work is its own, and sums are what it computed."""

    def __init__(self) -> None:
        super().__init__(rank=0, world_size=1)

    def all_gather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast_object(self, function: Callable[[], T]) -> T:
        return function()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(tensors)

    def rank_zero_first(self, function: Callable[[], T]) -> T:
        return function()

    def sum_gradients(self, model: nn.Module) -> None:
        """Leave the gradients unchanged."""

    def for_a_thread(self) -> Exchange:
        return self


SINGLE_PROCESS = SingleProcess()
