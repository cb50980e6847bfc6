"""What every benchmark needs: options, the machine, the memory it took, a dated line in a file beside the script."""

import argparse
import json
import os
import resource
from datetime import date
from pathlib import Path
from typing import Any

import torch

CPU = torch.device("cpu")
TENSOR_CORES = {"H100": 989.4e12, "H200": 989.4e12, "A100": 312e12, "RTX 4090": 165.2e12}  # dense bfloat16, FLOP/s


def parser(description: str | None) -> argparse.ArgumentParser:
    """For a script with this docstring."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return made


def machine(threads: int, device: torch.device = CPU) -> dict[str, Any]:
    """When and on what it is measured."""
    facts = {"date": str(date.today()), "torch": torch.__version__, "threads": threads, "processor": processor(device)}
    return facts | {"kernels": torch.backends.cpu.get_cpu_capability()}


def processor(device: torch.device = CPU) -> str:
    """The name of the GPU, or the one that the kernel gives to the processor."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":")[1].strip() if names else "unknown"


def published_limit(device: torch.device) -> float | None:
    """FLOP/s in bfloat16 by the data sheet of a GPU, which model FLOPs utilisation (MFU) refers to."""
    found = (limit for name, limit in TENSOR_CORES.items() if name in processor(device))
    return next(found, None) if device.type == "cuda" else None


def peak(device: torch.device = CPU) -> float:
    """The most memory that this process has held, in GB: torch's on a GPU, else by the kernel's account."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def append(script: str, line: dict[str, Any]) -> None:
    """Add a line to the .jsonl file beside the script, whose `__file__` this is."""
    with Path(script).with_suffix(".jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
