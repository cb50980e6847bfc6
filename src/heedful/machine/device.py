"""Choice of the torch device and of the fastest training precision for it, with a description for exact results."""

import os
import platform
import sys
import time
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F

from heedful.errors import InputError

LAYER = (512, 256, 1024)  # rows, inputs and outputs: milliseconds, even where bfloat16 is computed in software
TRIALS = 5
WORTH = 1.3  # times the float32 speed of a product, from which a whole training step is faster in bfloat16


class PrecisionChoice(NamedTuple):
    """A training precision, "float32" or "bfloat16", and the reason for it in words."""

    precision: Literal["float32", "bfloat16"]
    reason: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """Find the faster training precision of a device; takes a tenth of a second, or half of one.

    A CPU without bfloat16 instructions computes bfloat16 in software, at a tenth of the speed of float32. A CPU with
    them may still not use them, as under `ONEDNN_MAX_CPU_ISA=AVX2`, so that a short product of each type decides.
    """
    if device.type == "cuda":
        with torch.cuda.device(device):
            in_hardware = torch.cuda.is_bf16_supported(including_emulation=False)
        name = torch.cuda.get_device_name(device)
        if in_hardware:
            return PrecisionChoice("bfloat16", f"{name} computes bfloat16")
        return PrecisionChoice("float32", f"{name} computes bfloat16 in software")
    if device.type != "cpu":
        return PrecisionChoice("float32", f"bfloat16 was not measured on a device of type {device.type}")
    ratio = bfloat16_ratio()
    return PrecisionChoice(
        "bfloat16" if ratio >= WORTH else "float32",
        f"this processor multiplies matrices in bfloat16 at {ratio:.2g} times the speed of float32",
    )


@torch.no_grad()
def bfloat16_ratio() -> float:
    """Time matrix products in both types; return the speed of bfloat16 divided by the speed of float32.

    The processor time of a single thread is taken, so that other work on the machine changes the ratio little.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        trials = [(product_seconds(torch.float32), product_seconds(torch.bfloat16)) for _ in range(TRIALS)]
    finally:
        torch.set_num_threads(threads)
    single, half = map(min, zip(*trials, strict=True))
    return single / half


def product_seconds(dtype: torch.dtype) -> float:
    """Measure the processor time of a matrix product of size `LAYER`."""
    rows, inner, columns = LAYER
    x, weight = torch.ones(rows, inner, dtype=dtype), torch.ones(columns, inner, dtype=dtype)
    F.linear(x, weight)  # warm-up: only the first product sets up a kernel
    begin = time.thread_time()
    F.linear(x, weight)
    return time.thread_time() - begin


def choose_device(name: str | torch.device) -> torch.device:
    """Return the torch device of a name such as "cuda:1"; "auto" takes a GPU if there is one.

    From then on float32 is float32 on a GPU of NVIDIA: torch computes its convolutions and recurrent layers in TF32,
    which has 10 bits of precision instead of 23, unless it is told not to.
    """
    if name in ("gpu", "GPU"):
        raise InputError(f'there is no device "{name}"; write "cuda", or "mps" for a GPU of Apple')
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.allow_tf32 = False
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else "no"
        raise InputError(
            f'the device "{name}" cannot be used ({reason}), and torch finds {gpus} GPU here; use "auto" or "cpu", as '
            "train.device in a recipe or as --device of a command"
        ) from error


def environment(device: torch.device) -> dict[str, str | int]:
    """Describe what a run's exact numbers depend on besides its recipe: versions, system, device, threads, cores."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": sys.platform,
        "device": device.type,
        "gpu": gpu,
        "processor": processor(torch.device("cpu")),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count() or 1,
    }


def processor(device: torch.device) -> str:
    """Return the name of a GPU or, for the CPU, that of the processor; before torch 2.11 its kind only."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return str(capabilities.get("cpu_name") or platform.processor() or platform.machine())
