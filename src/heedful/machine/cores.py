"""Several batches at a time on a CPU, each on a core of its own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(function: Callable[[T], R], items: Sequence[T], device: torch.device) -> Iterator[R]:
    """`map(function, items)`, on a CPU with one item a core.

    The operations of a search are too small to be divided among cores: side by side they take less time than one after
    another on all cores. Fewer items than cores share them.
    """
    cores = torch.get_num_threads()
    if device.type != "cpu" or cores == 1 or len(items) < cores:
        yield from map(function, items)
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(cores) as pool:
            yield from pool.map(function, items)
    finally:
        torch.set_num_threads(cores)
