"""Accelerators by their data sheets, and this machine's CPU by a measured product of matrices."""

import os
from dataclasses import dataclass, replace

import torch

from heedful.errors import InputError
from heedful.machine.limits import matmul_speed

CPU = "cpu"
SIZE = 1024  # of the matrices that are multiplied to measure a CPU
NODE = 8  # GPUs in a node, whose links are faster than those between nodes
BETWEEN_NODES = 50e9  # bytes per second for each GPU: a network of 400 Gb/s, an assumption


@dataclass(frozen=True)
class Accelerator:
    """Accelerator as its data sheet describes it.

    Attributes:
        name: its name.
        flops: dense FLOPs per second in the precision of the run: bfloat16, unless `find_accelerator` is asked for
            float32.
        float32: dense FLOPs per second in float32, without TF32.
        memory: bytes.
        link: bytes per second that it can send to others in its node, in one direction.
        source: where the numbers come from.
    """

    name: str
    flops: float
    float32: float
    memory: float
    link: float
    source: str = "data sheet"


ACCELERATORS = {
    "h100": Accelerator("NVIDIA H100 SXM", 989.4e12, 66.9e12, 80e9, 450e9),
    "h200": Accelerator("NVIDIA H200 SXM", 989.4e12, 66.9e12, 141e9, 450e9),
    "a100": Accelerator("NVIDIA A100 80GB SXM", 312e12, 19.5e12, 80e9, 300e9),
    "a100-40gb": Accelerator("NVIDIA A100 40GB SXM", 312e12, 19.5e12, 40e9, 300e9),
    "rtx4090": Accelerator("NVIDIA RTX 4090", 165.2e12, 82.6e12, 24e9, 32e9),
}


def find_accelerator(name: str, precision: str) -> Accelerator:
    """Find an accelerator by its name, or measure this machine's CPU, with its speed in a precision of training.

    Raises:
        InputError: there is no accelerator of that name here.
    """
    if name == CPU:
        return this_machine(torch.float32 if precision == "float32" else torch.bfloat16)
    if name not in ACCELERATORS:
        raise InputError(f"--gpu {name}: known are {', '.join(ACCELERATORS)}, and {CPU} for this machine")
    found = ACCELERATORS[name]
    return replace(found, flops=found.float32) if precision == "float32" else found


def this_machine(dtype: torch.dtype) -> Accelerator:
    """Measure the FLOPs per second of this machine's CPU in products of matrices, for a fraction of a second."""
    flops = matmul_speed(SIZE, SIZE, SIZE, dtype, torch.device("cpu"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Accelerator("this machine's CPU", flops, flops, memory, 1e9, "measured now")


def link_of(accelerator: Accelerator, count: int) -> float:
    """Return the bytes per second that each of some accelerators can send to the others: within a node, or between."""
    return accelerator.link if count <= NODE else min(accelerator.link, BETWEEN_NODES)
