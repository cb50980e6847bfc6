"""Settings of the process before it computes: cores, threads, memory allocator, and the caller's random numbers."""

import ctypes
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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


M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt(3)


def prepare_process(threads: int | None = None, processes: int = 1) -> None:
    """Set up this process for computing: no more torch threads than cores, and freed memory stays with the process.

    `processes` of this machine compute at the same time, and share the cores.
    """
    # torch does not know the quota of a container
    cores = usable_cores() // processes if processes > 1 else min(torch.get_num_threads(), usable_cores())
    torch.set_num_threads(threads or max(1, cores))
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Let glibc keep freed memory blocks, instead of returning them to the kernel and fetching them at every step.

    Training steps on a CPU take a quarter less time; the process holds its peak memory. Without glibc nothing is done.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    libc.mallopt(M_TOP_PAD, 64 * 2**20)


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Put torch's global generators back, after the block or the decorated function, to where they were before it.

    These are the generator of the CPU, and those of GPUs if this process uses them.
    """
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus):
        yield
