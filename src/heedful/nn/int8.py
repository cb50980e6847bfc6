"""Int8 quantisation of linear layers: a quarter of the memory, and faster matrix products on some CPUs.

Measured in searches (docs/performance.md): 2.1 to 2.6 times the speed of float32 with a base model on one core of a
Zen 4; with a small model 0.94 to 1.1 times, and 0.8 times for a single sentence. Processors without instructions for
8-bit products (VNNI) are slower in int8 with every model.

N rows, K inputs, M outputs.
"""

import copy
import logging
from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float, Int8, Int32
from torch import Tensor, nn

from heedful.errors import InputError

LOG = logging.getLogger(__name__)
LARGEST = 127
EXACT_IN_FLOAT32 = 2**24 // LARGEST**2  # number of products of two such integers that add up exactly in float32
SMALLEST = 1e-12  # smallest scale, so that a row of zeros stays zero


class Int8Linear(nn.Module):
    """Quantised linear layer: an int8 weight matrix, with one scale for each output (1/127 of its largest weight).

    Each row of inputs is rounded to 1/127 of its largest entry (dynamic, symmetric quantisation), so that other
    rows of a batch have no effect: sums of integer products are exact. Only the last bit of an input can matter, where
    that bit decides the direction in which an entry is rounded.
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
        """The weight matrix in float32 after rounding, for code that needs numbers, such as the fused loss."""
        return self.steps * self.scale[:, None]

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        """Apply the quantised linear layer: x W^T + b, in the type of `x`."""
        rows, scale = rounded(x.flatten(0, -2).float())  # N K and N 1
        # Both scales are taken out of the sums: the products in between are of integers.
        y = integer_product(rows, self.steps).float().mul_(scale).mul_(self.scale)
        if self.bias is not None:
            y += self.bias
        return y.to(x.dtype).unflatten(0, x.shape[:-1])


def rounded(rows: Float[Tensor, "N K"]) -> tuple[Int8[Tensor, "N K"], Float[Tensor, "N 1"]]:
    """Quantise each row to int8 steps; return the steps and the size of a step for each row."""
    # Symmetric: zero stays zero, and the largest entry of a row becomes 127 or -127.
    scale = (rows.abs().amax(1, keepdim=True) / LARGEST).clamp_(min=SMALLEST)
    return (rows / scale).round_().to(torch.int8), scale


def integer_product(rows: Int8[Tensor, "N K"], steps: Int8[Tensor, "M K"]) -> Int32[Tensor, "N M"]:
    """Multiply int8 matrices exactly, on any processor: `rows` times `steps` transposed.

    Processors without VNNI instructions add up pairs of 8-bit products in 16 bits, which overflow. There the products
    are computed in float32, in blocks of inputs that are small enough to be exact.
    """
    if integer_kernels_are_exact():
        return torch.ops.aten._int_mm(rows, steps.T)
    # 127 x 127 x 1040 is below 2^24: up to there float32 adds integers exactly.
    blocks = zip(rows.split(EXACT_IN_FLOAT32, 1), steps.split(EXACT_IN_FLOAT32, 1), strict=True)
    total = rows.new_zeros(len(rows), len(steps), dtype=torch.int32)
    for left, right in blocks:
        total += (left.float() @ right.float().T).int()
    return total


@cache
def integer_kernels_are_exact() -> bool:
    """True if this processor's 8-bit matrix products are exact, tested with a product of the largest numbers."""
    largest = torch.full((64, 64), LARGEST, dtype=torch.int8)
    return bool((torch.ops.aten._int_mm(largest, largest) == 64 * LARGEST**2).all())


def in_int8(model: nn.Module) -> nn.Module:
    """Quantise a model's linear layers to int8 in a copy, which shares all other weights with `model`.

    Raises:
        InputError: the model is not on a CPU.
    """
    device = next(model.parameters()).device
    if device.type != "cpu":
        raise InputError(f"int8 is for processors, and the model is on {device}; add --device cpu, or leave int8 out")
    if not integer_kernels_are_exact():
        LOG.warning("int8 is slower than float32 here: this processor has no instructions for exact 8-bit products")
    # deepcopy takes what is in its memo for a copy: quantised layers for linear ones, and all other weights themselves.
    linear = {id(module): Int8Linear(module) for module in model.modules() if isinstance(module, nn.Linear)}
    return copy.deepcopy(model, linear | {id(parameter): parameter for parameter in model.parameters()}).eval()


INFERENCE_PRECISIONS: dict[str, Callable[[nn.Module], nn.Module]] = {"float32": lambda model: model, "int8": in_int8}
