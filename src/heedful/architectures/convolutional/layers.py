"""Gated convolutions with weight normalisation (Dauphin et al. 2017; Gehring et al. 2017): layer, stack and cache."""

import math
from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.nn.dropout import Dropout
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedConvolutionalStack
from heedful.nn.spacing import Spacing, windows
from heedful.registry import POSITIONS


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


HALF = math.sqrt(0.5)  # on the sum of two vectors, so that it has their variance (Gehring et al. 2017, section 3.4)

Attend = Callable[
    [int, Tensor, Tensor], Tensor
]  # layer, its outputs (B C E) and the embedded tokens (B C D) to (B C E)


class Surroundings(Protocol):
    """Interface of what the convolutions of a stack see beyond the ends of their inputs."""

    def extend(self, layer: int, x: Float[Tensor, "B C E"], /) -> Float[Tensor, "B C2 E"]:
        """Extend the inputs of a layer by K - 1 columns in all."""
        ...


class Zeros:
    """Zeros before and behind the inputs of every layer."""

    def __init__(self, before: int, behind: int) -> None:
        self.sides = (0, 0, before, behind)

    def extend(self, layer: int, x: Float[Tensor, "B C E"]) -> Float[Tensor, "B C2 E"]:
        """Extend the inputs of a layer by zeros."""
        del layer
        return F.pad(x, self.sides)


class ConvolutionCache:
    """Cache of a stack of causal convolutions during decoding: the last K - 1 inputs of each layer for each row."""

    def __init__(self, inputs: list[Float[Tensor, "R K1 E"]]) -> None:
        self.inputs = inputs

    def extend(self, layer: int, x: Float[Tensor, "R C E"]) -> Float[Tensor, "R C2 E"]:
        """Extend the inputs of a layer by those before them, and remember the last ones."""
        extended = torch.cat([self.inputs[layer], x], dim=1)
        self.inputs[layer] = extended[:, x.size(1) :]
        return extended

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the inputs."""
        self.inputs = [inputs[rows] for inputs in self.inputs]


class GatedConvolution(nn.Module):
    """Convolution over neighbouring tokens, half of whose outputs gate the other half (GLU; Dauphin et al. 2017).

    A gated linear unit divides the variance by 4, and dropout multiplies that of its inputs by 1 / (1 - rate): the
    weights are drawn so that the outputs have the variance of the inputs (Gehring et al. 2017, section 3.5).
    """

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.size = config.kernel_size
        self.dropout = Dropout(config.dropout)
        self.linear = NormalisedLinear(self.size * config.width, 2 * config.width, 4 * (1 - config.dropout))

    def forward(self, x: Float[Tensor, "B C2 E"]) -> Float[Tensor, "B C E"]:
        """Compute the outputs for each column with K - 1 others after it."""
        return F.glu(self.linear(windows(self.dropout(x), self.size)))


def without_attention(layer: int, x: Tensor, embedded: Tensor) -> Tensor:
    """Return the outputs of a layer as they are."""
    del layer, embedded
    return x


class ConvolutionalStack(nn.Module):
    """Stack of gated convolutions over embedded tokens, with residual connections (Gehring et al. 2017, section 3.2).

    Linear layers lead from the size of the embeddings to that of the hidden states, and back. Padding changes nothing,
    and documents in one row are apart.

    Args:
        config: the model configuration.
        layers: the number of layers.
        causal: True if a token sees itself and earlier tokens only; else it sees as many on both sides.
    """

    def __init__(self, config: ConvolutionalConfig, layers: int, *, causal: bool) -> None:
        super().__init__()
        self.positions = POSITIONS[config.positions](config, causal=causal)
        self.dropout = Dropout(config.dropout)
        self.enter = NormalisedLinear(config.d_model, config.width, 1 - config.dropout)
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(layers))
        self.leave = NormalisedLinear(config.width, config.d_model, 1.0)
        self.gap = config.kernel_size - 1
        self.zeros = Zeros(self.gap, 0) if causal else Zeros(self.gap // 2, self.gap - self.gap // 2)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: AttentionMask,
        cache: ConvolutionCache | None = None,
        attend: Attend = without_attention,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of padded rows of embedded tokens.

        Args:
            x: the last T tokens of each row.
            mask: which tokens are real, and where documents begin.
            cache: what the layers have seen of earlier tokens; None: there are none.
            attend: completes the outputs of each layer.
        """
        return self.dropout(self.convolve(self.embed(x, mask), mask, cache, attend))

    def embed(self, x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "B T D"]:
        """Add the positions of tokens to their embeddings."""
        return self.dropout(self.positions.embed(x, mask.query_positions, mask.length))

    def convolve(
        self,
        embedded: Float[Tensor, "B T D"],
        mask: AttentionMask,
        cache: ConvolutionCache | None = None,
        attend: Attend = without_attention,
    ) -> Float[Tensor, "B T D"]:
        """Compute hidden states of embedded tokens with positions, before dropout; arguments as for `forward`."""
        spacing = Spacing(mask.padding_mask[:, -embedded.size(1) :], mask.query_positions, self.gap)
        surroundings: Surroundings = cache or self.zeros
        tokens = spacing.spread(embedded)
        x = self.enter(tokens) * spacing.real
        for number, layer in enumerate(self.layers):
            outputs = attend(number, layer(surroundings.extend(number, x)), tokens)
            x = (x + outputs) * HALF * spacing.real
        return self.leave(spacing.collect(x))

    def named(self, name: str, sequence: str) -> NamedConvolutionalStack:
        """Name the stack for the inspector."""
        return NamedConvolutionalStack(name, sequence, self)

    def begin(self, rows: int) -> ConvolutionCache:
        """Create the cache of rows without any token: zeros."""
        inputs = self.leave.direction.new_zeros(rows, self.gap, self.leave.direction.size(1))
        return ConvolutionCache([inputs] * len(self.layers))
