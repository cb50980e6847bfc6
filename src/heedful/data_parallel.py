"""Reduction over the processes of one training (data parallelism): shares of a batch, sums of counts and gradients."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from torch import nn

N = TypeVar("N", int, float)


class Reducer(ABC):
    """Reducer of a process: tells it which examples are its own, and sums what all processes computed from theirs.

    All processes call the same methods in the same order, and get the same sums.

    Attributes:
        rank: The number of this process, from 0 to `world_size` - 1.
        world_size: The number of processes.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size

    def shard(self, ids: np.ndarray) -> np.ndarray:
        """Select the examples of this process from the ids of a batch, (B, ...): every `world_size`-th.

        The shards of all processes together are the batch; a shard is empty if there are fewer examples than processes.
        """
        return ids[self.rank :: self.world_size]

    @abstractmethod
    def sum_values(self, values: Sequence[N]) -> list[N]:
        """Sum numbers over all processes, place by place; the list of a process without a batch may be shorter."""

    @abstractmethod
    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradient of each parameter over all processes, in place.

        A gradient that is None in some processes counts as zeros there; one that is None in all of them stays None.
        """


class SingleProcess(Reducer):
    """Reducer of a training in a single process: all examples are its own, and sums are what it computed."""

    def __init__(self) -> None:
        super().__init__(rank=0, world_size=1)

    def sum_values(self, values: Sequence[N]) -> list[N]:
        """Return the values unchanged."""
        return list(values)

    def sum_gradients(self, model: nn.Module) -> None:
        """Leave the gradients unchanged."""


SINGLE_PROCESS = SingleProcess()
