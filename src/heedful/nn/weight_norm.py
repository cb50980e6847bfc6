"""Weight normalisation: linear layers whose rows of weights have a direction and a length (Salimans & Kingma 2016).

torch's own `parametrizations.weight_norm` hangs the two on a layer under names that are torch's affair, and an
initialisation that writes to the product of the two changes nothing. Here they are two parameters with names of ours.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class NormalisedLinear(nn.Module):
    """Linear layer with weight normalisation: row i of the weight matrix is gain_i direction_i / |direction_i|.

    Weights are drawn from N(0, gain / inputs), so that outputs have `gain` times the variance of the inputs; biases
    begin as zero (Gehring et al. 2017, section 3.5).

    Args:
        inputs: the size of the input vectors.
        outputs: the size of the output vectors.
        gain: the variance of the outputs at the beginning, for inputs of variance 1.
    """

    parameter_kind = "convolutions"

    def __init__(self, inputs: int, outputs: int, gain: float) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.empty(outputs, inputs).normal_(std=(gain / inputs) ** 0.5))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    @property
    def weight(self) -> Float[Tensor, "M K"]:
        """The weight matrix."""
        return self.direction * (self.length / self.direction.norm(dim=1))[:, None]

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        """Compute x W^T + b."""
        return F.linear(x, self.weight, self.bias)
