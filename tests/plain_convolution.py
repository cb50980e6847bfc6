"""Weight-normalised layers as sums over numbers, for convolutions that are computed a token at a time."""

import torch
from torch import Tensor

from heedful.architectures.convolutional.layers import NormalisedLinear
from heedful.architectures.convolutional.settings import ConvolutionalConfig

CONFIG = ConvolutionalConfig(d_model=7, channels=5, kernel_size=3, max_positions=31)


def stirred(module):
    """The module in float64 with random lengths and biases: fresh ones are norms and zeros, which hide mistakes."""
    for layer in module.modules():
        if isinstance(layer, NormalisedLinear):
            torch.nn.init.uniform_(layer.length, 0.5, 1.5)
            torch.nn.init.normal_(layer.bias)
    return module.double().eval().requires_grad_(False)


def linear(layer: NormalisedLinear, x: Tensor) -> Tensor:
    return torch.stack(
        [
            length * sum(w * v for w, v in zip(direction, x, strict=True)) / direction.square().sum().sqrt() + bias
            for direction, length, bias in zip(layer.direction, layer.length, layer.bias, strict=True)
        ]
    )
