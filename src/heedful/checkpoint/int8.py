"""Matrices that are stored as 8-bit integers, in a quarter of the bytes of float32.

Each row has a scale, 127 / its largest absolute weight, and a weight is an integer divided by the scale of its row. The
scales are stored under the name of the matrix with ".scale" appended. CTranslate2 quantises rows in the same way, so a
conversion to its format gives the same integers.

M rows, K columns.
"""

import re
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from heedful.checkpoint.safetensors_format import SCALE
from heedful.errors import InputError

MAX_STEP = 127
MIN_LARGEST = 1e-36  # used in place of a smaller largest weight, for which the scale could overflow
EXACT = re.compile(r".*positions\.table\.weight")  # position tables, which CTranslate2 keeps in float32


def quantised(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights as they are stored: matrices in int8, each followed by its scales, and the rest in float32.

    Position tables are not quantised.
    """
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        value = weight.detach().float()
        if not value.isfinite().all():
            raise InputError(f"{name}: has infinite or NaN values; export an earlier checkpoint")
        if value.ndim == 2 and not EXACT.fullmatch(name):
            stored[name], stored[name + SCALE] = quantise(value)
        else:
            stored[name] = value
    return stored


def quantise(matrix: Float[Tensor, "M K"]) -> tuple[Int8[Tensor, "M K"], Float[Tensor, " M"]]:
    """Scale each row of a matrix and round it to integers from -127 to 127; return them and the scales."""
    largest = matrix.abs().amax(1)
    scale = MAX_STEP / torch.where(largest > 0, largest.clamp(min=MIN_LARGEST), MAX_STEP)  # zeros stay zero
    return (matrix * scale[:, None]).round().to(torch.int8), scale


def dequantised(weights: Mapping[str, Tensor], folder: object) -> dict[str, Tensor]:
    """Convert the output of `quantised` back to float32; leave other weights unchanged."""
    values = dict(weights)
    for name, matrix in weights.items():
        # Integers without a scale are not weights: the caller rejects them because of their type.
        if matrix.dtype != torch.int8 or name + SCALE not in weights:
            continue
        scale = values.pop(name + SCALE)
        is_valid = matrix.ndim == 2 and scale.shape == matrix.shape[:1] and scale.dtype == torch.float32
        if not is_valid or not (scale.isfinite() & (scale > 0)).all():
            raise InputError(
                f"{folder}: {name}{SCALE} is not a valid scale of {name}: restore the model from an intact copy"
            )
        values[name] = matrix.float() / scale[:, None]
    return values
