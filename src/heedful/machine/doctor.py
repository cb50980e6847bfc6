"""Checks of `heedful doctor`: the speed of this machine, and what slows it down."""

import os
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.machine.cores import usable_cores
from heedful.machine.device import choose_precision
from heedful.machine.memory import free_memory
from heedful.machine.other_work import BUSY, PERIOD, OtherWork
from heedful.machine.speed import copy_speed, matmul_speed, operation_overhead
from heedful.wording import counted

CPU = torch.device("cpu")
LAYER = (4096, 512, 2048)  # rows, inputs and outputs of the first feed-forward layer of `vaswani-base`
LARGE_LAYER = (8192, 4096, 16384)  # enough work for all cores of a GPU
MIN_FREE_DISK, MIN_FREE_MEMORY = 2, 2  # GB; with less, `doctor` gives advice
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # environment variables that set torch's number of threads


class Finding(NamedTuple):
    """Result of a check of this machine; the advice is empty if nothing is wrong."""

    subject: str
    result: str
    advice: str = ""


def versions() -> Finding:
    return Finding("software", f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()}")


def threads() -> Finding:
    """Compare the number of torch threads with the number of cores that this process may use.

    Having fewer threads than cores is a problem only if an environment variable sets their number: by default, torch
    does not use a core's second hardware thread.
    """
    cores = usable_cores()
    count = min(torch.get_num_threads(), cores)
    variables = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    advice = ""
    if count < cores and variables:
        them = "it" if len(variables) == 1 else "them"
        advice = f"cores are idle because of {' and '.join(variables)}: unset {them}, or set {them} to {cores}"
    return Finding("threads", f"{counted(count, 'threads')} on {counted(cores, 'cores')}", advice)


def other_work() -> Finding:
    others = OtherWork()
    time.sleep(PERIOD)
    cores = others.cores() or 0.0
    advice = "they slow down training; stop processes that you do not need" if cores > BUSY else ""
    return Finding("other work", f"other processes use {cores:.1f} of {counted(usable_cores(), 'cores')}", advice)


def allocator() -> Finding:
    if platform.libc_ver()[0] == "glibc":
        return Finding("memory allocator", "glibc, which keeps freed memory while heedful trains or decodes")
    return Finding("memory allocator", "not glibc: left unchanged")


def matrix_products() -> Finding:
    """Measure the CPU's throughput for layer-sized matrix multiplications, in float32 and bfloat16."""
    single, half = (matmul_speed(*LAYER, dtype, CPU) / 1e9 for dtype in (torch.float32, torch.bfloat16))
    return Finding(
        "matrix multiplications",
        f"float32 {single:,.0f}, bfloat16 {half:,.0f} GFLOP/s; {torch.backends.cpu.get_cpu_capability()}; "
        f'train.precision = "auto" is {choose_precision(CPU).precision}',
    )


def memory() -> Finding:
    free = free_memory() / 1e9
    advice = "close other programs" if free < MIN_FREE_MEMORY else ""
    return Finding("memory", f"bandwidth {copy_speed(CPU) / 1e9:,.0f} GB/s, {free:,.1f} GB free", advice)


def overhead() -> Finding:
    return Finding("per-operation overhead", f"{operation_overhead(CPU) * 1e6:,.1f} microseconds")


def disk() -> Finding:
    free = shutil.disk_usage(".").free / 1e9
    advice = "checkpoints need space: free some, or choose another disk with --out" if free < MIN_FREE_DISK else ""
    return Finding("disk", f"{free:,.0f} GB free here", advice)


def gpu() -> Finding:
    """Describe the GPU that `device = "auto"` uses: its name, memory, bfloat16 throughput and memory bandwidth."""
    if not torch.cuda.is_available():
        advice = ""
        if Path("/dev/nvidia0").exists() and torch.version.cuda is None:
            advice = "there is one, but this torch was built for CPUs: install a CUDA build"
        elif Path("/dev/nvidia0").exists():
            advice = f"there is one, but its driver does not support CUDA {torch.version.cuda}: update the driver"
        return Finding("GPU", "none that torch can use", advice)
    device = torch.device("cuda")
    name, size = torch.cuda.get_device_name(device), torch.cuda.get_device_properties(device).total_memory / 2**30
    speed, bandwidth = matmul_speed(*LARGE_LAYER, torch.bfloat16, device) / 1e12, copy_speed(device, 2**30) / 1e9
    return Finding("GPU", f"{name}, {size:,.0f} GiB: bfloat16 {speed:,.0f} TFLOP/s, {bandwidth:,.0f} GB/s")


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
