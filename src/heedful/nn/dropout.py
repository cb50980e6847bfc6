"""Dropout (Srivastava et al. 2014), fast on a CPU: 15 random bits for each value."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BITS = 15  # the probability is rounded to a multiple of 2^-15, but not to 0 or 1


class Dropout(nn.Module):
    """Dropout layer: in training, zero each value with probability `p` and scale the rest by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout, drawn from torch's global generator; return `x` itself in evaluation mode or with p = 0."""
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        """Format the probability for `print(model)`."""
        return f"p={self.p}"


def dropout(x: Tensor, p: float) -> Tensor:
    """Apply dropout to a tensor of any shape, whether in training or not."""
    if p == 0.0:
        return x
    return x * keep_mask(x, p) if x.device.type == "cpu" else F.dropout(x, p)


def keep_mask(x: Tensor, p: float) -> Tensor:
    """Draw a dropout mask like `x`: 0 with probability `p`, 1 / (1 - p) elsewhere, so that the mean stays the same.

    On a CPU one 64-bit draw decides four values, and each decision is the sign of a 16-bit sum: a comparison and the
    conversion of its booleans take six times as long.
    """
    if x.device.type != "cpu":
        return F.dropout(torch.ones_like(x), p)
    # A draw of 64 bits is four int16; without their signs, which are masked out, they are numbers below 2^15.
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    keeping = min(max(2**BITS - round(p * 2**BITS), 1), 2**BITS - 1)  # of 2^15 outcomes
    keep = bits.bitwise_and_(2**BITS - 1).add_(keeping) >> BITS  # -1 where the sum overflows, 0 elsewhere
    return keep.to(x.dtype).mul_(-(2**BITS) / keeping)
