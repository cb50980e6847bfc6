"""Helpers of all benchmarks: options, the machine, peak memory, and dated result lines in a file beside the script."""

import argparse
import json
import os
import resource
from datetime import date
from pathlib import Path
from typing import Any

import torch

from heedful.machine.device import processor

CPU = torch.device("cpu")
TENSOR_CORES = {"H100": 989.4e12, "H200": 989.4e12, "A100": 312e12, "RTX 4090": 165.2e12}  # dense bfloat16, FLOP/s


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make the argument parser of a benchmark, with the docstring of its script as description."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return made


def machine(threads: int, device: torch.device = CPU) -> dict[str, Any]:
    """Describe the date and the machine of a measurement."""
    facts = {"date": str(date.today()), "torch": torch.__version__, "threads": threads, "processor": processor(device)}
    return facts | {"kernels": torch.backends.cpu.get_cpu_capability()}


def published_limit(device: torch.device) -> float | None:
    """Return a GPU's bfloat16 FLOP/s by its data sheet, the base of model FLOPs utilisation (MFU)."""
    found = (limit for name, limit in TENSOR_CORES.items() if name in processor(device))
    return next(found, None) if device.type == "cuda" else None


def peak(device: torch.device = CPU) -> float:
    """Return the peak memory of this process in GB: torch's on a GPU, else as the kernel reports it."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def append(script: str, line: dict[str, Any]) -> None:
    """Append a result line to the .jsonl file beside a benchmark script, given the script's `__file__`."""
    with Path(script).with_suffix(".jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
