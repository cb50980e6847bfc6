"""Linear maps in 8-bit integers: a quarter of the bits, and faster products on some CPUs.

Measured in searches (docs/performance.md): 2.1 to 2.6 times the speed of float32 with a base model on one core of a
Zen 4; with a small model 0.94 to 1.1 times, and 0.8 times for a sentence alone. Processors without instructions for it
(VNNI) are slower in int8 whatever the model.

N rows, K inputs, M outputs.
"""

import copy
import logging
from functools import cache

import torch
from jaxtyping import Float, Int8, Int32
from torch import Tensor, nn

from heedful.errors import InputError

LOG = logging.getLogger(__name__)
LARGEST = 127
EXACT_IN_FLOAT32 = 2**24 // LARGEST**2  # so many products of two such integers add up exactly in float32
SMALLEST = 1e-12  # of a scale: a row of zeros stays one


class Int8Linear(nn.Module):
    """A trained linear map, its matrix in steps of 1/127 of each output's largest weight.

    Each row of inputs is rounded to 1/127 of its own largest entry (dynamic, symmetric quantisation), so that the other
    rows of a batch do not matter: the sums of products are integers, and exact. What does matter is the last bit of an
    input, where it decides which way an entry is rounded.
    """

    steps: Int8[Tensor, "M K"]
    scale: Float[Tensor, " M"]
    bias: Float[Tensor, " M"] | None

    def __init__(self, trained: nn.Linear) -> None:
        super().__init__()
        steps, scale = rounded(trained.weight.detach().float())
        self.register_buffer("steps", steps)
        self.register_buffer("scale", scale[:, 0])
        self.bias = trained.bias

    @property
    def weight(self) -> Float[Tensor, "M K"]:
        """The matrix as it was rounded, for what needs numbers, such as a loss that is fused with the projection."""
        return self.steps * self.scale[:, None]

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        """Return x W^T + b, in the type of `x`."""
        rows, scale = rounded(x.flatten(0, -2).float())
        y = integer_product(rows, self.steps).float().mul_(scale).mul_(self.scale)
        if self.bias is not None:
            y += self.bias
        return y.to(x.dtype).unflatten(0, x.shape[:-1])


def rounded(rows: Float[Tensor, "N K"]) -> tuple[Int8[Tensor, "N K"], Float[Tensor, "N 1"]]:
    """Each row in whole steps, and the size of its step."""
    scale = (rows.abs().amax(1, keepdim=True) / LARGEST).clamp_(min=SMALLEST)
    return (rows / scale).round_().to(torch.int8), scale


def integer_product(rows: Int8[Tensor, "N K"], steps: Int8[Tensor, "M K"]) -> Int32[Tensor, "N M"]:
    """Multiply integers exactly, on any processor: `rows` times `steps` transposed.

    Processors without VNNI instructions add up pairs of 8-bit products in 16 bits, which overflow. There float32 does
    it, a block of inputs at a time that is small enough to be exact.
    """
    if integer_kernels_are_exact():
        return torch.ops.aten._int_mm(rows, steps.T)
    blocks = zip(rows.split(EXACT_IN_FLOAT32, 1), steps.split(EXACT_IN_FLOAT32, 1), strict=True)
    total = rows.new_zeros(len(rows), len(steps), dtype=torch.int32)
    for left, right in blocks:
        total += (left.float() @ right.float().T).int()
    return total


@cache
def integer_kernels_are_exact() -> bool:
    """Find out, by a product of the largest numbers, whether this processor's 8-bit kernels lose nothing."""
    largest = torch.full((64, 64), LARGEST, dtype=torch.int8)
    return bool((torch.ops.aten._int_mm(largest, largest) == 64 * LARGEST**2).all())


def unchanged(model: nn.Module) -> nn.Module:
    """The model itself."""
    return model


def in_int8(model: nn.Module) -> nn.Module:
    """A model whose linear maps are in integers; it shares all other weights with `model`, which stays as it is.

    Raises:
        InputError: the model is not on a CPU.
    """
    device = next(model.parameters()).device
    if device.type != "cpu":
        raise InputError(f"int8 is for processors, and the model is on {device}; add --device cpu, or leave int8 out")
    if not integer_kernels_are_exact():
        LOG.warning("int8 is slower than float32 here: this processor has no instructions for exact 8-bit products")
    linear = {id(module): Int8Linear(module) for module in model.modules() if isinstance(module, nn.Linear)}
    return copy.deepcopy(model, linear | {id(parameter): parameter for parameter in model.parameters()}).eval()


INFERENCE_PRECISIONS = {"float32": unchanged, "int8": in_int8}
