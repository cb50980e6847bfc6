"""The machine that a run is on: its device, its threads, its memory allocator."""

import ctypes
import os
import platform
import sys

import torch

from heedful.errors import InputError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt(3)


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" takes a GPU where there is one.

    Raises:
        InputError: torch does not know the device, or the machine does not have it.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f'device "{name}" cannot be used ({reason}); use "auto", "cpu" or "cuda"') from error


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks instead of giving them back to the kernel and fetching them again at every step.

    Training steps on a CPU take a quarter less time; the process holds its peak memory. Elsewhere nothing is done.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    libc.mallopt(M_TOP_PAD, 64 * 2**20)


def environment(device: torch.device) -> dict[str, str | int]:
    """What a run's exact numbers depend on besides its recipe."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": sys.platform,
        "device": device.type,
        "gpu": gpu,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count() or 1,
    }
