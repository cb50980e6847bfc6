"""Differences between results that should be equal, as one number."""

from collections.abc import Sequence

import torch
from torch import Tensor


def apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference of two tensors, relative to the largest number of the second; NaN if one holds NaN.

    Two empty tensors, such as the weights of no class token, do not differ.
    """
    if not found.numel() and found.shape == wanted.shape:
        return 0.0
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))


def furthest(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest of the relative differences of several pairs of tensors; NaN if one holds NaN."""
    return float(torch.tensor([apart(one, other) for one, other in zip(found, wanted, strict=True)]).max())
