"""CPU cores that this process may use, and a parallel map that computes one batch per core."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import psutil
import torch

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(function: Callable[[T], R], items: Sequence[T], device: torch.device) -> Iterator[R]:
    """Map a function over items, results in their order; on a CPU items run in parallel threads, one item per core.

    The operations of a beam search are too small to be divided among cores: side by side they take less time than one
    after another on all cores. If there are fewer items than cores, each item in turn uses all cores.
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


def usable_cores() -> int:
    """Number of CPU cores that this process may use, by its affinity and, on Linux, by its control group's quota."""
    cores = len(allowed_cores())
    quota = Path("/sys/fs/cgroup/cpu.max")
    if not quota.is_file():
        return cores
    most, period = quota.read_text().split()
    return cores if most == "max" else max(1, min(cores, round(int(most) / int(period))))


def allowed_cores() -> list[int]:
    """Numbers of the CPU cores on which the system lets this process run: all of them on macOS."""
    process = psutil.Process()
    return process.cpu_affinity() if hasattr(process, "cpu_affinity") else list(range(psutil.cpu_count() or 1))
