"""Matrices that are stored as 8-bit or 4-bit integers, in about a quarter or a seventh of the bytes of float32.

In int8, each row has a scale, 127 / its largest absolute weight, and a weight is an integer divided by the scale of its
row. CTranslate2 quantises rows in the same way, so a conversion to its format gives the same integers. In int4, each
group of 32 weights of a row has a step, so that its largest absolute weight is -8 steps, and a weight is an integer
from -8 to 7 times that step; a byte holds two of them. The scales, or steps, are stored under the name of the matrix
with ".scale" appended.

M rows, K columns, G groups of a row.
"""

import re
from collections.abc import Mapping

import torch
from jaxtyping import BFloat16, Float, Int8, UInt8
from torch import Tensor

from heedful.checkpoint.description import INT4, INT8
from heedful.checkpoint.safetensors_format import SCALE
from heedful.errors import InputError

MAX_STEP = 127
MIN_LARGEST = 1e-36  # used in place of a smaller largest weight, for which the scale could overflow
GROUP, MAX_INT4, ZERO_INT4 = 32, 7, 8  # columns of a group; the largest integer; 8 is added to store the integers
EXACT = re.compile(r".*positions\.table\.weight")  # position tables, which CTranslate2 keeps in float32


def quantised(weights: Mapping[str, Tensor], precision: str = INT8) -> dict[str, Tensor]:
    """Return weights as they are stored: matrices as integers, each followed by its scales, the rest in float32.

    Position tables are not quantised. In int4, matrices whose rows cannot be divided into groups are stored in int8.
    """
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        value = weight.detach().float()
        if not value.isfinite().all():
            raise InputError(f"{name}: has infinite or NaN values; export an earlier checkpoint")
        if value.ndim != 2 or EXACT.fullmatch(name):
            stored[name] = value
        elif precision == INT4 and value.shape[1] % GROUP == 0:
            stored[name], stored[name + SCALE] = quantise_int4(value)
        else:
            stored[name], stored[name + SCALE] = quantise(value)
    return stored


def quantise(matrix: Float[Tensor, "M K"]) -> tuple[Int8[Tensor, "M K"], Float[Tensor, " M"]]:
    """Scale each row of a matrix and round it to integers from -127 to 127; return them and the scales."""
    largest = matrix.abs().amax(1)
    scale = MAX_STEP / torch.where(largest > 0, largest.clamp(min=MIN_LARGEST), MAX_STEP)  # zeros stay zero
    return (matrix * scale[:, None]).round().to(torch.int8), scale


def quantise_int4(matrix: Float[Tensor, "M K"]) -> tuple[UInt8[Tensor, "M K/2"], BFloat16[Tensor, "M G"]]:
    """Divide each group of a matrix by its step and round it to integers from -8 to 7; return them and the steps."""
    groups = matrix.unflatten(1, (-1, GROUP))  # (M, G, GROUP)
    largest = groups.gather(2, groups.abs().argmax(2, keepdim=True)).squeeze(2)
    step = (largest / -ZERO_INT4).bfloat16()  # negative if the largest absolute weight is positive
    divisor = torch.where(step != 0, step.float(), 1)[..., None]
    integers = (groups / divisor).round().clamp(-ZERO_INT4, MAX_INT4).flatten(1).to(torch.int8) + ZERO_INT4
    even, odd = integers.to(torch.uint8).unflatten(1, (-1, 2)).unbind(2)
    return even | odd << 4, step


def dequantised(weights: Mapping[str, Tensor], folder: object) -> dict[str, Tensor]:
    """Convert the output of `quantised` back to float32; leave other weights unchanged."""
    values = dict(weights)
    for name, matrix in weights.items():
        # Integers without a scale are not weights: the caller rejects them because of their type.
        if matrix.dtype not in (torch.int8, torch.uint8) or name + SCALE not in weights:
            continue
        scale = values.pop(name + SCALE)
        shape, dtype = matrix.shape[:1], torch.float32
        if matrix.dtype == torch.uint8 and matrix.ndim == 2:
            shape, dtype = torch.Size((len(matrix), matrix.shape[1] * 2 // GROUP)), torch.bfloat16
        is_valid = matrix.ndim == 2 and scale.shape == shape and scale.dtype == dtype
        if not is_valid or not (scale.isfinite() & ((scale > 0) | (dtype == torch.bfloat16))).all():
            raise InputError(
                f"{folder}: {name}{SCALE} is not a valid scale of {name}: restore the model from an intact copy"
            )
        if matrix.dtype == torch.int8:
            values[name] = matrix.float() / scale[:, None]
        else:
            integers = torch.stack((matrix & 15, matrix >> 4), dim=2).flatten(1).float() - ZERO_INT4
            values[name] = (integers.unflatten(1, (-1, GROUP)) * scale.float()[..., None]).flatten(1)
    return values
