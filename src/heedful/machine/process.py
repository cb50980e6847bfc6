"""Process-wide state: torch threads, the memory allocator, and random number generators."""

import ctypes
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from heedful.machine.cores import usable_cores

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(function: Callable[[T], R], items: Sequence[T], device: torch.device) -> Iterator[R]:
    """Map a function over items, and yield the results in order; on a CPU, in parallel threads, one per core.

    The operations of a beam search are too small to be divided among cores: several searches in parallel take less time
    than if each in turn used all cores. Fewer items than cores are processed one after another, each on all cores.
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


M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt(3)


def prepare_process(threads: int | None = None, processes: int = 1) -> None:
    """Set up this process for computing: at most one torch thread per core, and freed memory stays with the process.

    Args:
        threads: The number of torch threads. If None, it is torch's default but at most one per core; with several
            processes, one per core of this process's share.
        processes: The number of processes on this machine that share the cores.
    """
    # torch's default number of threads ignores a container's CPU quota.
    cores = usable_cores() // processes if processes > 1 else min(torch.get_num_threads(), usable_cores())
    torch.set_num_threads(threads or max(1, cores))
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Let glibc keep freed memory, instead of returning it to the kernel and requesting it again at every step.

    Training steps on a CPU take a quarter less time, but the process keeps its peak memory. Other C libraries are left
    unchanged.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    # Without mmap, large blocks also come from the heap, which keeps up to 2 GiB of free memory at its end.
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    libc.mallopt(M_TOP_PAD, 64 * 2**20)


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Restore torch's global generators, of the CPU and of GPUs in use, after the block or decorated function."""
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus):
        yield
