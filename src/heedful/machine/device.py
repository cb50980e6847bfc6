"""Choice of the torch device and its fastest training precision, and the environment that results depend on."""

import os
import platform
import sys
import time
from functools import cache
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F

from heedful.errors import InputError
from heedful.wording import counted

LAYER = (512, 256, 1024)  # rows, inputs, outputs; takes only milliseconds, even if bfloat16 is emulated
TRIALS = 5
MIN_SPEEDUP = 1.3  # of matrix multiplications in bfloat16; with less, a whole training step is no faster


class PrecisionChoice(NamedTuple):
    """A training precision, "float32" or "bfloat16", and the reason for choosing it, in words."""

    precision: Literal["float32", "bfloat16"]
    reason: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """Choose the training precision of a device: bfloat16 if it is likely to be faster, otherwise float32.

    On a CPU, the choice takes 0.1 to 0.5 seconds. A CPU without bfloat16 instructions emulates bfloat16 in software, at
    a tenth of the speed of float32. Even a CPU with these instructions may not use them, for example with
    `ONEDNN_MAX_CPU_ISA=AVX2`, so a small multiplication is timed in each type.
    """
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        if lacks_bfloat16(device):
            return PrecisionChoice("float32", f'{name} lacks bfloat16; train.precision = "float16" may be faster')
        return PrecisionChoice("bfloat16", f"{name} supports bfloat16")
    if device.type != "cpu":
        return PrecisionChoice("float32", f"bfloat16 was not measured on a device of type {device.type}")
    ratio = bfloat16_ratio()
    return PrecisionChoice(
        "bfloat16" if ratio >= MIN_SPEEDUP else "float32",
        f"on this CPU, matrix multiplications in bfloat16 are {ratio:.2g} times as fast as in float32",
    )


def lacks_bfloat16(device: torch.device) -> bool:
    """Return True for a GPU that supports bfloat16 only in software."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return not torch.cuda.is_bf16_supported(including_emulation=False)


def check_precision(precision: str, device: torch.device) -> None:
    """Check that a GPU supports a training precision in hardware."""
    if precision in ("bfloat16", "autocast") and lacks_bfloat16(device):
        raise InputError(
            f'train.precision = "{precision}": {torch.cuda.get_device_name(device)} lacks bfloat16; set '
            'train.precision = "float16", or "float32"'
        )


@cache  # a process keeps its choice
@torch.no_grad()
def bfloat16_ratio() -> float:
    """Return the speed of bfloat16 matrix multiplications on the CPU, divided by the speed in float32."""
    threads = torch.get_num_threads()
    # `time.thread_time` does not see the work of other threads.
    torch.set_num_threads(1)
    try:
        # The types alternate, so that a change in clock frequency affects both.
        trials = [(product_seconds(torch.float32), product_seconds(torch.bfloat16)) for _ in range(TRIALS)]
    finally:
        torch.set_num_threads(threads)
    single, half = map(min, zip(*trials, strict=True))
    return single / half


def product_seconds(dtype: torch.dtype) -> float:
    """Measure a multiplication of size `LAYER` in seconds of processor time, which other processes hardly affect."""
    rows, inner, columns = LAYER
    x, weight = torch.ones(rows, inner, dtype=dtype), torch.ones(columns, inner, dtype=dtype)
    F.linear(x, weight)  # warm-up: the first call sets up a kernel
    begin = time.thread_time()
    F.linear(x, weight)
    return time.thread_time() - begin


def choose_device(name: str | torch.device, setting: str = "the device") -> torch.device:
    """Return the torch device with a name such as "cuda:1"; "auto" is "cuda" if available, otherwise "cpu".

    An error message calls the name `setting`.

    As a side effect, TF32 is disabled. Its mantissa has 10 bits instead of 23, and torch uses it by default for
    convolutions and recurrent layers in float32 on NVIDIA GPUs.
    """
    if name in ("gpu", "GPU"):
        raise InputError(f'unknown device "{name}"; use "cuda", or "mps" for an Apple GPU')
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f'unknown device "{name}"; use auto, cpu, cuda, cuda:1 or mps') from error
    torch.backends.cudnn.allow_tf32 = False
    try:
        # Creating a tensor, even an empty one, shows whether the device can be used.
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        gpus = counted(torch.cuda.device_count(), "GPUs") if torch.cuda.is_available() else "no GPU"
        raise InputError(
            f'{setting} "{name}" cannot be used ({reason}); torch finds {gpus} here; use "auto" or "cpu"'
        ) from error


def environment(device: torch.device) -> dict[str, str | int]:
    """Describe what a run's exact results depend on besides recipe and data, such as versions and the device."""
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
    """Return the name of a GPU or of the processor; before torch 2.11, only the processor's architecture."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return str(capabilities.get("cpu_name") or platform.processor() or platform.machine())
