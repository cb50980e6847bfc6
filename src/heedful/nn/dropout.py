"""Dropout (Srivastava et al. 2014), fast on a CPU: 15 random bits for each value."""

from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BITS = 15  # the rate is rounded to a multiple of 2^-15, but not to 0 or 1


@runtime_checkable
class Dropping(Protocol):
    """A layer that drops something out in training, with probability `rate`."""

    rate: float


class Dropout(nn.Module):
    """Dropout layer: in training, zero each value with probability `rate` and scale the rest by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout, drawn from torch's global generator; return `x` itself in evaluation mode or at rate 0."""
        return dropout(x, self.rate) if self.training else x

    def extra_repr(self) -> str:
        """Format the dropout rate for `print(model)`."""
        return f"rate={self.rate}"


def dropout(x: Tensor, rate: float) -> Tensor:
    """Apply dropout to a tensor of any shape, whether in training or not."""
    if rate == 0.0:
        return x
    return x * keep_mask(x, rate) if x.device.type == "cpu" else F.dropout(x, rate)


def keep_mask(x: Tensor, rate: float) -> Tensor:
    """Draw a dropout mask like `x`: 0 with probability `rate`, 1 / (1 - rate) elsewhere.

    On a CPU one 64-bit draw decides four values, and each decision is the sign of a 16-bit sum: a comparison and the
    conversion of its booleans take six times as long.
    """
    if x.device.type != "cpu":
        return F.dropout(torch.ones_like(x), rate)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = min(max(2**BITS - round(rate * 2**BITS), 1), 2**BITS - 1)
    keep = bits.bitwise_and_(2**BITS - 1).add_(kept) >> BITS  # -1 where the sum overflows, 0 elsewhere
    return keep.to(x.dtype).mul_(-(2**BITS) / kept)
