"""Accelerators by their data sheets, and this machine's GPU or CPU by a measured product of matrices."""

from dataclasses import dataclass, replace

import torch

from heedful.errors import InputError
from heedful.machine.limits import matmul_speed
from heedful.machine.memory import total_memory

CPU = "cpu"
HERE = "here"  # the first GPU of this machine, or without one its CPU
SIZE = 1024  # of the matrices that are multiplied to measure a CPU
GPU_SIZE = 8192  # and a GPU, which smaller ones do not keep busy
NODE = 8  # GPUs in a node, whose links are faster than those between nodes
GPU_LINK = 32e9  # bytes per second between GPUs of this machine: PCIe 4.0 x16, an assumption
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


def at_hand(name: str) -> str:
    """Return the name of an accelerator, with `CPU` for `HERE` on a machine without a GPU."""
    return CPU if name == HERE and not torch.cuda.is_available() else name


def find_accelerator(name: str, precision: str) -> Accelerator:
    """Find an accelerator by its name, or measure this machine's, with its speed in a precision of training.

    Raises:
        InputError: there is no accelerator of that name here.
    """
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    if name == CPU:
        return this_machine(dtype)
    if name == HERE:
        return this_gpu(dtype)
    if name not in ACCELERATORS:
        raise InputError(f"--gpu {name}: known are {', '.join(ACCELERATORS)}, and {HERE} and {CPU} for this machine")
    found = ACCELERATORS[name]
    return replace(found, flops=found.float32) if precision == "float32" else found


def this_machine(dtype: torch.dtype) -> Accelerator:
    """Measure the FLOPs per second of this machine's CPU in products of matrices, for a fraction of a second."""
    flops = matmul_speed(SIZE, SIZE, SIZE, dtype, torch.device("cpu"))
    return Accelerator("this machine's CPU", flops, flops, total_memory(), 1e9, "measured now")


def this_gpu(dtype: torch.dtype) -> Accelerator:
    """Measure the FLOPs per second of this machine's first GPU in products of matrices."""
    flops = matmul_speed(GPU_SIZE, GPU_SIZE, GPU_SIZE, dtype, torch.device("cuda", 0))
    properties = torch.cuda.get_device_properties(0)
    return Accelerator(properties.name, flops, flops, properties.total_memory, GPU_LINK, "measured now")


def link_of(accelerator: Accelerator, count: int) -> float:
    """Return the bytes per second that each of some accelerators can send to the others: within a node, or between."""
    return accelerator.link if count <= NODE else min(accelerator.link, BETWEEN_NODES)
