"""Several processes that train one model, played by threads."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier
from typing import Any

import torch
from torch import nn

from heedful.distributed.reducer import Reducer
from heedful.tasks.task import Evaluation


class OneOfSeveral(Reducer):
    """One of several threads, which hand each other what they have."""

    def __init__(self, rank: int, given: list[Any], barrier: Barrier) -> None:
        super().__init__(rank, len(given))
        self.given = given
        self.barrier = barrier

    def all_gather(self, value):
        return [json.loads(text) for text in self.exchange(json.dumps(value))]

    def exchange(self, value):
        self.given[self.rank] = value
        self.barrier.wait()
        values = list(self.given)
        self.barrier.wait()
        return values

    def broadcast_object(self, function):
        return self.all_gather(function() if self.is_rank_zero else None)[0]

    def for_a_thread(self):
        return self

    def rank_zero_first(self, function):
        for _ in range(self.rank):
            self.barrier.wait()
        value = function()
        for _ in range(self.rank, self.world_size):
            self.barrier.wait()
        return value

    def broadcast_tensors(self, tensors):
        return self.exchange(tensors)[0]

    def sum_gradients(self, model: nn.Module, sums: Any = None) -> None:
        parameters = list(model.parameters())
        for parameter, *grads in zip(parameters, *self.exchange([p.grad for p in parameters]), strict=True):
            known = [grad for grad in grads if grad is not None]
            parameter.grad = sum(known[1:], known[0].clone()) if known else None


def in_processes(count: int, work: Callable[[Reducer], Any]) -> list[Any]:
    """What several processes return that do the same work, in the order of their ranks."""
    given, barrier = [None] * count, Barrier(count, timeout=60)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, [OneOfSeveral(rank, given, barrier) for rank in range(count)]))


def validated(task: Any, model: nn.Module, count: int) -> list[Any]:
    """The scores that each of several processes reports of the validation of one model."""

    def work(reducer: Reducer) -> Any:
        with torch.no_grad():
            results = copy(task).evaluate(model, Evaluation(reducer))
        return results and results.scores

    return in_processes(count, work)
