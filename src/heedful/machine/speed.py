"""The FLOPs of a call, counted while torch runs it, and speeds measured on this machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.machine.process import preserve_rng_state


def count_flops(call: Callable[[], object]) -> int:
    with without_fused_kernels(), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


@contextmanager
def without_fused_kernels() -> Iterator[None]:
    """Compute attention and recurrent layers with matrix multiplications, whose FLOPs torch counts."""
    mkldnn = torch.backends.mkldnn
    before, *_ = mkldnn.set_flags(_enabled=False)
    try:
        with torch.backends.cudnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        mkldnn.set_flags(_enabled=before)


TRIALS = 5
MIN_TRIAL_SECONDS = 0.02  # roughly, because the number of calls is estimated from one


@torch.no_grad()
def matmul_speed(rows: int, inner: int, columns: int, dtype: torch.dtype, device: torch.device) -> float:
    """Measure a linear layer's FLOP/s, (rows, inner) x (inner, columns), counting 2 FLOP per multiply-add."""
    with preserve_rng_state():
        x = torch.randn(rows, inner, device=device).to(dtype)
        weight = torch.randn(columns, inner, device=device).to(dtype)
    return 2 * rows * inner * columns / best_time(lambda: F.linear(x, weight), device)


def copy_speed(device: torch.device, size: int = 2**26) -> float:
    """Measure the bytes read and written per second when copying `size` bytes (by default more than a CPU's cache)."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / best_time(lambda: target.copy_(source), device)


def operation_overhead(device: torch.device) -> float:
    """Measure the seconds that a tiny addition takes: the fixed cost of a torch operation."""
    x = torch.zeros(8, device=device)
    return best_time(lambda: x + 1, device)


def best_time(call: Callable[[], object], device: torch.device) -> float:
    """Measure the seconds per call: the best mean of several trials with many calls each."""
    timed(call, 1, device)  # warm-up: the first call sets up kernels
    # A short call may take less time than the clock resolves.
    once = max(timed(call, 1, device), 1e-9)
    repeats = max(1, int(MIN_TRIAL_SECONDS / once))
    return min(timed(call, repeats, device) / repeats for _ in range(TRIALS))


def timed(call: Callable[[], object], repeats: int, device: torch.device) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
