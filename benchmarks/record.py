"""What every benchmark notes: the machine, the memory of this process, and a dated line in a file beside the script."""

import json
import resource
from datetime import date
from pathlib import Path
from typing import Any

import torch


def machine(threads: int) -> dict[str, Any]:
    """When and on what it is measured."""
    return {"date": str(date.today()), "torch": torch.__version__, "threads": threads, "processor": processor()}


def processor() -> str:
    """The name that the kernel gives to the processor."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":")[1].strip() if names else "unknown"


def peak() -> float:
    """The most memory that this process has held, in GB, by the kernel's account."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def append(script: str, line: dict[str, Any]) -> None:
    """Add a line to the .jsonl file beside the script, whose `__file__` this is."""
    with Path(script).with_suffix(".jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
