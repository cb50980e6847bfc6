"""The process that computes: its torch threads, glibc's memory allocator, and the caller's random numbers."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from heedful.machine.cores import usable_cores

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt(3)


def prepare_process(threads: int | None = None, processes: int = 1) -> None:
    """Set up this process for computing: no more torch threads than cores, and freed memory stays with the process.

    Args:
        threads: the number of threads that torch computes with; None: torch's own choice, but no more than the usable
            cores, as torch does not know the quota of a container.
        processes: the number of processes of this machine that compute at the same time, and share the cores.
    """
    chosen = usable_cores() // processes if processes > 1 else min(torch.get_num_threads(), usable_cores())
    torch.set_num_threads(threads or max(1, chosen))
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
