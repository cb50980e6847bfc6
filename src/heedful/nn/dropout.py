"""Dropout (Srivastava et al. 2014): on a CPU, with 15 random bits for each value, which is fast."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BITS = 15  # the probability is rounded to a multiple of 2^-15, but not to 0 or 1


class Dropout(nn.Module):
    """Dropout layer: zeroes each value with probability `p` in training and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout with random numbers from torch; return `x` itself in evaluation mode or if p is 0."""
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        return f"p={self.p}"


def dropout(x: Tensor, p: float) -> Tensor:
    if p == 0.0:
        return x
    return x * keep_mask(x, p) if x.device.type == "cpu" else F.dropout(x, p)


def keep_mask(x: Tensor, p: float) -> Tensor:
    """Sample a dropout mask like `x`: 0 with probability `p`, 1 / (1 - p) elsewhere, so that its mean is 1.

    On a CPU, one 64-bit random number serves four values, and the sign of a 16-bit sum decides whether a value is kept.
    A comparison, whose booleans would have to be converted, takes six times as long.
    """
    if x.device.type != "cpu":
        return F.dropout(torch.ones_like(x), p)
    # A 64-bit number is four int16, which are below 2^15 once their sign bits are cleared.
    numbers = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = numbers.view(torch.int16)[: x.numel()].view(x.shape)
    # A value is kept for this many of the 2^15 outcomes.
    outcomes = min(max(2**BITS - round(p * 2**BITS), 1), 2**BITS - 1)
    # bits + outcomes is at least 2^15, and overflows an int16, for `outcomes` of the 2^15 values of bits.
    keep = bits.bitwise_and_(2**BITS - 1).add_(outcomes) >> BITS  # -1 where the sum overflows, 0 elsewhere
    # The factor turns -1 into 1 / (1 - p), with the rounded p.
    return keep.to(x.dtype).mul_(-(2**BITS) / outcomes)
