"""What this machine can do at most, measured: matrix products, memory, the smallest operation.

A figure is the best of several trials, so that what else the machine does counts least.
"""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

TRIALS = 5
ENOUGH = 0.02  # seconds of a trial


@torch.no_grad()
def matmul_speed(rows: int, inner: int, columns: int, dtype: torch.dtype, device: torch.device) -> float:
    """FLOP/s of (rows, inner) times (columns, inner) transposed, as in a linear layer; 2 FLOP a product and sum."""
    x = torch.randn(rows, inner, device=device).to(dtype)
    weight = torch.randn(columns, inner, device=device).to(dtype)
    return 2 * rows * inner * columns / best_time(lambda: F.linear(x, weight), device)


def copy_speed(device: torch.device, size: int = 2**26) -> float:
    """Bytes a second, read and written, of copying `size` bytes, which no CPU's cache should hold."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / best_time(lambda: target.copy_(source), device)


def smallest_time(device: torch.device) -> float:
    """Seconds of adding a number to eight others: what an operation costs that does nothing."""
    x = torch.zeros(8, device=device)
    return best_time(lambda: x + 1, device)


def best_time(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of a call: the best of some trials, each of as many calls as take a while."""
    timed(call, 1, device)  # what only the first call costs
    once = max(timed(call, 1, device), 1e-9)
    repeats = max(1, int(ENOUGH / once))
    return min(timed(call, repeats, device) / repeats for _ in range(TRIALS))


def timed(call: Callable[[], object], repeats: int, device: torch.device) -> float:
    """Seconds of so many calls, until the device is done with them."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
