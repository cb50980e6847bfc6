"""Differences between results that should be equal, as one number."""

from collections.abc import Sequence

import torch
from torch import Tensor


def apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference of two tensors, relative to the largest number of the second; NaN if one holds NaN."""
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))


def furthest(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest of the relative differences of several pairs of tensors; NaN if one holds NaN."""
    return float(torch.tensor([apart(one, other) for one, other in zip(found, wanted, strict=True)]).max())
