"""Two processes that train one model, played by two threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from threading import Barrier
from typing import Any

from torch import nn

from heedful.data_parallel import N, Reducer


class OneOfTwo(Reducer):
    """One of two threads: what it gives is summed with what the other one gives."""

    def __init__(self, rank: int, given: list[Any], barrier: Barrier) -> None:
        super().__init__(rank, world_size=2)
        self.given = given
        self.barrier = barrier

    def exchange(self, own: Any) -> list[Any]:
        """What both have given, in the order of their ranks."""
        self.given[self.rank] = own
        self.barrier.wait()
        both = list(self.given)
        self.barrier.wait()
        return both

    def sum_values(self, values: Sequence[N]) -> list[N]:
        return [a + b for a, b in zip_longest(*self.exchange(values), fillvalue=0)]

    def sum_gradients(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        for parameter, *grads in zip(parameters, *self.exchange([p.grad for p in parameters]), strict=True):
            known = [grad for grad in grads if grad is not None]
            parameter.grad = sum(known[1:], known[0].clone()) if known else None


def in_two(work: Callable[[Reducer], Any]) -> list[Any]:
    """What both processes return that do the same work."""
    given, barrier = [None, None], Barrier(2, timeout=60)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, [OneOfTwo(rank, given, barrier) for rank in range(2)]))
