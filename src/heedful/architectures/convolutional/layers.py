"""Gated convolutions with weight normalisation (Dauphin et al. 2017; Gehring et al. 2017): stack and decoder.

B batch, T tokens, C columns, N source tokens, D model, E channels, R rows, K kernel size.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.nn.attention import masked_softmax
from heedful.nn.dropout import Dropout
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedConvolutionalStack
from heedful.nn.spacing import ConvolutionCache, Spacing, windows
from heedful.registry import POSITIONS


class NormalisedLinear(nn.Module):
    """Linear layer with weight normalisation: row i of the weight matrix is length_i direction_i / |direction_i|.

    Weights are drawn from N(0, gain / inputs), so that outputs have `gain` times the variance of the inputs; biases
    are initially zero (Gehring et al. 2017, section 3.5).
    """

    parameter_kind = "convolutions"

    def __init__(self, inputs: int, outputs: int, gain: float) -> None:
        super().__init__()
        # As separate parameters, length and direction can change independently (Salimans & Kingma 2016).
        self.direction = nn.Parameter(torch.empty(outputs, inputs).normal_(std=(gain / inputs) ** 0.5))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    @property
    def weight(self) -> Float[Tensor, "M K"]:
        return self.direction * (self.length / self.direction.norm(dim=1))[:, None]

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        return F.linear(x, self.weight, self.bias)


SQRT_HALF = math.sqrt(0.5)  # factor that keeps the variance of a sum of two vectors (Gehring et al. 2017, section 3.4)

# Maps the index of a layer, its outputs (B C E) and the embedded tokens (B C D) to new outputs (B C E).
Attend = Callable[[int, Tensor, Tensor], Tensor]


class GatedConvolution(nn.Module):
    """Convolution over neighbouring tokens; half of its outputs gate the other half (GLU; Dauphin et al. 2017).

    A gated linear unit divides the variance by 4, and dropout multiplies it by 1 / (1 - p): the initial weights cancel
    both factors (Gehring et al. 2017, section 3.5).
    """

    parameter_kind = "convolutions"

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.size = config.kernel_size
        self.dropout = Dropout(config.dropout)
        self.linear = NormalisedLinear(self.size * config.width, 2 * config.width, 4 * (1 - config.dropout))

    def forward(self, x: Float[Tensor, "B C2 E"]) -> Float[Tensor, "B C E"]:
        # B (C + K - 1) E to windows of K columns, B C KE, to B C E: a linear layer over windows is a convolution.
        return F.glu(self.linear(windows(self.dropout(x), self.size)))


class ConvolutionalStack(nn.Module):
    """Stack of gated convolutions over embedded tokens, with residual connections (Gehring et al. 2017, section 3.2).

    Linear layers map the embedding size to the hidden size, and back. In a causal stack, the window of a token ends
    with it; in others, the token is in the middle. Padding and other documents in a row have no effect.
    """

    def __init__(self, config: ConvolutionalConfig, layers: int, *, causal: bool) -> None:
        super().__init__()
        self.positions = POSITIONS[config.positions](config, causal=causal)
        self.dropout = Dropout(config.dropout)
        self.enter = NormalisedLinear(config.d_model, config.width, 1 - config.dropout)
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(layers))
        self.leave = NormalisedLinear(config.width, config.d_model, 1.0)
        self.gap = config.kernel_size - 1
        # Zeros before and after a layer's columns, so that a layer has as many output columns as input columns.
        before = self.gap if causal else self.gap // 2
        self.padding = (0, 0, before, self.gap - before)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: AttentionMask,
        cache: ConvolutionCache | None = None,
        attend: Attend | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of padded rows of embedded tokens.

        Args:
            x: The last T tokens of each row.
            mask: Which tokens are real, and where documents begin.
            cache: The inputs of the layers for earlier tokens.
            attend: In a decoder, the function that attends to the source with the outputs of each layer.
        """
        return self.dropout(self.convolve(self.embed(x, mask), mask, cache, attend))

    def embed(self, x: Float[Tensor, "B T D"], mask: AttentionMask) -> Float[Tensor, "B T D"]:
        return self.dropout(self.positions.embed(x, mask.query_positions, mask.length))

    def convolve(
        self,
        embedded: Float[Tensor, "B T D"],
        mask: AttentionMask,
        cache: ConvolutionCache | None = None,
        attend: Attend | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of embedded tokens with positions, before dropout; see `forward`."""
        spacing = Spacing(mask.padding_mask[:, -embedded.size(1) :], mask.query_positions, self.gap)
        tokens = spacing.spread(embedded)  # B C D
        x = self.enter(tokens) * spacing.real  # B C E; columns without a token, which got a bias, are zeroed again
        for number, layer in enumerate(self.layers):
            # A layer has K - 1 more input columns than output columns: cached ones in a search, otherwise zeros.
            outputs = layer(cache.extend(number, x) if cache else F.pad(x, self.padding))
            if attend:
                outputs = attend(number, outputs, tokens)
            # Gaps between documents are zeroed again; otherwise information would leak across them in the next layer.
            x = (x + outputs) * SQRT_HALF * spacing.real
        return self.leave(spacing.collect(x))

    def named(self, name: str, sequence: str) -> NamedConvolutionalStack:
        return NamedConvolutionalStack(name, sequence, self)

    def begin(self, rows: int) -> ConvolutionCache:
        inputs = self.leave.direction.new_zeros(rows, self.gap, self.leave.direction.size(1))
        return ConvolutionCache([inputs] * len(self.layers))


class ConvolvedSource(NamedTuple):
    """Encoded source, as a convolutional decoder reads it."""

    keys: Float[Tensor, "R N D"]  # the hidden states z of the encoder
    values: Float[Tensor, "R N D"]  # (z + e) sqrt(0.5): the embeddings e add information about the token itself
    padding_mask: Bool[Tensor, "R N"]

    def select(self, rows: Int[Tensor, " R2"]) -> "ConvolvedSource":
        return ConvolvedSource(self.keys[rows], self.values[rows], self.padding_mask[rows])


class ScaledGradient(torch.autograd.Function):
    """Identity function that multiplies the gradient by a factor."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


class SourceAttention(nn.Module):
    """Attention of a decoder layer to the source, "multi-step attention" (Gehring et al. 2017, section 3.3).

    The context, a weighted mean of N vectors, is scaled by N sqrt(1/N). If all weights are equal, it then has the
    variance of a single vector (section 3.4).
    """

    parameter_kind = "cross-attention"

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.query = NormalisedLinear(config.width, config.d_model, 1.0)
        self.out = NormalisedLinear(config.d_model, config.width, 1.0)
        self.alignment = nn.Identity()  # the inspector records the weights here

    def forward(
        self, x: Float[Tensor, "B C E"], embedded: Float[Tensor, "B C D"], source: ConvolvedSource
    ) -> Float[Tensor, "B C E"]:
        """Attend to the source with the outputs of a layer, and add the context to them."""
        # B C D. The embedding of the target token is added, as in formula 1 of the paper.
        queries = (self.query(x) + embedded) * SQRT_HALF
        weights = self.alignment(masked_softmax(queries @ source.keys.transpose(1, 2), source.padding_mask))
        # N sqrt(1/N) = sqrt(N), with N real tokens in each row.
        scale = source.padding_mask.sum(1).to(x.dtype).sqrt()[:, None, None]
        return (x + self.out(weights @ source.values * scale)) * SQRT_HALF


class ConvolutionalDecoder(nn.Module):
    """Convolutional decoder: embedded target tokens in, hidden states for the output projection out."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.stack = ConvolutionalStack(config, config.decoder_layers, causal=True)
        self.attentions = nn.ModuleList(SourceAttention(config) for _ in range(config.decoder_layers))

    def source(
        self, states: Float[Tensor, "B N D"], embedded: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]
    ) -> ConvolvedSource:
        """Combine an encoder's hidden states and the embedded source tokens for attention."""
        # The gradients of all decoder layers add up, so the sum is divided by the number of layers (section 3.4).
        states = ScaledGradient.apply(states, 1 / len(self.attentions))
        return ConvolvedSource(states, (states + embedded) * SQRT_HALF, padding_mask)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: AttentionMask,
        source: ConvolvedSource,
        cache: ConvolutionCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of the last T target tokens of each row; the cache covers earlier tokens."""

        def attend(layer: int, outputs: Tensor, embedded: Tensor) -> Tensor:
            return self.attentions[layer](outputs, embedded, source)

        return self.stack(x, mask, cache, attend)
