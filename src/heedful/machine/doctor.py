"""Checks of `heedful doctor`: the speed of this machine and what slows it down; each check returns a `Finding`."""

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from heedful.machine.device import choose_precision
from heedful.machine.memory import free_memory
from heedful.machine.other_work import BUSY, PERIOD, OtherWork
from heedful.machine.process import usable_cores
from heedful.machine.speed import copy_speed, matmul_speed, smallest_time
from heedful.wording import counted

CPU = torch.device("cpu")
LAYER = (4096, 512, 2048)  # rows, inputs and outputs of the first feed-forward layer of `vaswani-base`
LARGE_LAYER = (8192, 4096, 16384)  # fills a GPU
LITTLE_DISK, LITTLE_MEMORY = 2, 2  # GB
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # environment variables that set torch's number of threads


@dataclass(frozen=True)
class Finding:
    """Result of a check of this machine: subject, what was found, and advice, which is empty if all is well."""

    subject: str
    found: str
    advice: str = ""


def versions() -> Finding:
    """Report the versions of Python and torch, and the operating system."""
    return Finding("software", f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()}")


def threads() -> Finding:
    """Compare the threads of torch with the cores that this process may use; heedful takes no more threads than cores.

    Fewer threads than cores are a fault only if an environment variable asks for them: torch by itself leaves a core's
    second hardware thread out.
    """
    used, cores = min(torch.get_num_threads(), usable_cores()), usable_cores()
    found = f"{counted(used, 'threads')} on {counted(cores, 'cores')}"
    asked = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    if used < cores and asked:
        advice = f"cores are idle because of {' and '.join(asked)}: take it away, or set it to {cores}"
        return Finding("threads", found, advice)
    return Finding("threads", found)


def other_work() -> Finding:
    """Measure how many CPU cores other processes use."""
    others = OtherWork()
    time.sleep(PERIOD)
    used = others.cores() or 0.0
    found = f"other processes use {used:.1f} of {counted(usable_cores(), 'cores')}"
    if used > BUSY:
        return Finding("other work", found, "everything takes longer beside it; end what is not needed")
    return Finding("other work", found)


def allocator() -> Finding:
    """Report the memory allocator: heedful makes glibc keep freed memory, and leaves other allocators as they are."""
    if platform.libc_ver()[0] == "glibc":
        return Finding("memory allocator", "glibc, which heedful tells to keep freed memory while it trains or decodes")
    return Finding("memory allocator", "not glibc: nothing is changed")


def matrix_products() -> Finding:
    """Measure the CPU's speed at matrix products of the size of a layer, in float32 and bfloat16."""
    single, half = (matmul_speed(*LAYER, dtype, CPU) for dtype in (torch.float32, torch.bfloat16))
    found = (
        f"float32 {single / 1e9:,.0f}, bfloat16 {half / 1e9:,.0f} GFLOP/s; {torch.backends.cpu.get_cpu_capability()}"
    )
    faster = choose_precision(CPU).precision
    return Finding("matrix products", f'{found}; train.precision = "auto" takes {faster}')


def memory() -> Finding:
    """Measure how fast memory is copied, and report how much memory is free."""
    available = free_memory() / 1e9
    found = f"{copy_speed(CPU) / 1e9:,.0f} GB/s, {available:,.1f} GB free"
    return Finding("memory", found, "close other programs" if available < LITTLE_MEMORY else "")


def overhead() -> Finding:
    """Measure the fixed cost of a torch operation on the CPU, by a tiny addition."""
    return Finding("smallest operation", f"{smallest_time(CPU) * 1e6:,.1f} microseconds")


def disk() -> Finding:
    """Report the free disk space in the current folder, where runs are written."""
    free = shutil.disk_usage(".").free / 1e9
    advice = "checkpoints need room: free some, or name another disk with --out" if free < LITTLE_DISK else ""
    return Finding("disk", f"{free:,.0f} GB free here", advice)


def gpu() -> Finding:
    """Measure the GPU that `device = "auto"` takes: name, memory, and the speed of bfloat16 products and of copies."""
    if not torch.cuda.is_available():
        return Finding("GPU", "none that torch can use", no_gpu_advice())
    device = torch.device("cuda")
    name, size = torch.cuda.get_device_name(device), torch.cuda.get_device_properties(device).total_memory / 2**30
    speed, copied = matmul_speed(*LARGE_LAYER, torch.bfloat16, device) / 1e12, copy_speed(device, 2**30) / 1e9
    return Finding("GPU", f"{name}, {size:,.0f} GiB: bfloat16 {speed:,.0f} TFLOP/s, {copied:,.0f} GB/s")


def no_gpu_advice() -> str:
    """Advise on an NVIDIA GPU that torch cannot use; empty if the machine has none."""
    if not Path("/dev/nvidia0").exists():
        return ""
    if torch.version.cuda is None:
        return "there is one, but this torch is built for CPUs: install a build for CUDA"
    return f"there is one, but its driver does not go with CUDA {torch.version.cuda}: update the driver"


CHECKS: tuple[Callable[[], Finding], ...] = (
    versions,
    threads,
    other_work,
    allocator,
    matrix_products,
    memory,
    overhead,
    disk,
    gpu,
)
