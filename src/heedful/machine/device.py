"""Choice of the torch device, and a description of the software and hardware that exact results depend on."""

import os
import platform
import sys

import torch

from heedful.errors import InputError


def choose_device(name: str | torch.device) -> torch.device:
    """Return the torch device of a name such as "cuda:1"; "auto" takes a GPU if there is one.

    From then on float32 is float32 on a GPU of NVIDIA: torch computes its convolutions and recurrent layers in TF32,
    which has 10 bits of precision instead of 23, unless it is told not to.

    Raises:
        InputError: torch does not know the device, or the machine does not have it.
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
