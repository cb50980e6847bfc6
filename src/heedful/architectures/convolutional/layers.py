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
        # Length and direction are learned apart, so that one can change without the other (Salimans & Kingma 2016).
        self.direction = nn.Parameter(torch.empty(outputs, inputs).normal_(std=(gain / inputs) ** 0.5))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    @property
    def weight(self) -> Float[Tensor, "M K"]:
        return self.direction * (self.length / self.direction.norm(dim=1))[:, None]

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        return F.linear(x, self.weight, self.bias)


HALF = math.sqrt(0.5)  # on the sum of two vectors, so that it has their variance (Gehring et al. 2017, section 3.4)

Attend = Callable[[int, Tensor, Tensor], Tensor]  # layer, its outputs (B C E), embedded tokens (B C D) to (B C E)


class ConvolutionCache:
    """Cache of a stack of causal convolutions during decoding: the last K - 1 inputs of each layer for each row."""

    def __init__(self, inputs: list[Float[Tensor, "R K1 E"]]) -> None:
        self.inputs = inputs

    def extend(self, layer: int, x: Float[Tensor, "R C E"]) -> Float[Tensor, "R C2 E"]:
        """Extend the inputs of a layer by those before them, and remember the last ones."""
        # A causal convolution sees K - 1 columns back: more than these are never needed again.
        extended = torch.cat([self.inputs[layer], x], dim=1)
        self.inputs[layer] = extended[:, x.size(1) :]
        return extended

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.inputs = [inputs[rows] for inputs in self.inputs]


class GatedConvolution(nn.Module):
    """Convolution over neighbouring tokens, half of whose outputs gate the other half (GLU; Dauphin et al. 2017).

    A gated linear unit divides the variance by 4, and dropout multiplies that of its inputs by 1 / (1 - p): the
    weights are drawn so that the outputs have the variance of the inputs (Gehring et al. 2017, section 3.5).
    """

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.size = config.kernel_size
        self.dropout = Dropout(config.dropout)
        self.linear = NormalisedLinear(self.size * config.width, 2 * config.width, 4 * (1 - config.dropout))

    def forward(self, x: Float[Tensor, "B C2 E"]) -> Float[Tensor, "B C E"]:
        """Compute the outputs for each column with K - 1 others after it."""
        # A window of K columns is one vector (B C KE), so that the convolution is a linear layer.
        return F.glu(self.linear(windows(self.dropout(x), self.size)))


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
        # Embeddings and hidden states may have different sizes.
        self.enter = NormalisedLinear(config.d_model, config.width, 1 - config.dropout)
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(layers))
        self.leave = NormalisedLinear(config.width, config.d_model, 1.0)
        self.gap = config.kernel_size - 1
        # Zeros before and after the columns of a layer, as many as a window has neighbours on each side.
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
            x: the last T tokens of each row.
            mask: which tokens are real, and where documents begin.
            cache: what the layers have seen of earlier tokens; None: there are none.
            attend: adds to the outputs of each layer what a decoder finds in the source; None: nothing.
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
        """Compute hidden states of embedded tokens with positions, before dropout; arguments as for `forward`."""
        spacing = Spacing(mask.padding_mask[:, -embedded.size(1) :], mask.query_positions, self.gap)
        tokens = spacing.spread(embedded)  # B C D
        x = self.enter(tokens) * spacing.real  # B C E; columns without a token stay zero, whatever the bias
        for number, layer in enumerate(self.layers):
            # K - 1 more columns go in than come out: in a search the last ones, otherwise zeros.
            outputs = layer(cache.extend(number, x) if cache else F.pad(x, self.padding))
            if attend:
                outputs = attend(number, outputs, tokens)
            # Gaps between documents become zeros again, or the next layer would see across them.
            x = (x + outputs) * HALF * spacing.real
        return self.leave(spacing.collect(x))

    def named(self, name: str, sequence: str) -> NamedConvolutionalStack:
        return NamedConvolutionalStack(name, sequence, self)

    def begin(self, rows: int) -> ConvolutionCache:
        """Create the cache of rows without any token: zeros."""
        inputs = self.leave.direction.new_zeros(rows, self.gap, self.leave.direction.size(1))
        return ConvolutionCache([inputs] * len(self.layers))


class ConvolvedSource(NamedTuple):
    """Source as a convolutional decoder sees it."""

    keys: Float[Tensor, "R N D"]  # the hidden states of the source tokens, z
    values: Float[Tensor, "R N D"]  # z + e, with the embeddings of the tokens, so that a decoder finds single words too
    padding_mask: Bool[Tensor, "R N"]

    def select(self, rows: Int[Tensor, " R2"]) -> "ConvolvedSource":
        return ConvolvedSource(self.keys[rows], self.values[rows], self.padding_mask[rows])


class ScaledGradient(torch.autograd.Function):
    """Identity whose gradient is multiplied by a number."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


class SourceAttention(nn.Module):
    """Attention of each decoder layer to the source, "multi-step attention" (Gehring et al. 2017, section 3.3).

    Queries are the layer's outputs with the embeddings of the tokens read last. Sums of two are scaled by sqrt(0.5) as
    elsewhere. The context, a mean of N vectors, is scaled by N sqrt(1/N), so that it keeps their variance where all
    weights are alike (section 3.4).
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
        """Add to the outputs of a layer what they find in the source."""
        # B C D: with the embedding of the token read last, a layer knows where in the target it is.
        queries = (self.query(x) + embedded) * HALF
        weights = self.alignment(masked_softmax(queries @ source.keys.transpose(1, 2), source.padding_mask))
        # N sqrt(1/N) = sqrt(N), with N real tokens in each row.
        scale = source.padding_mask.sum(1).to(x.dtype).sqrt()[:, None, None]
        return (x + self.out(weights @ source.values * scale)) * HALF


class ConvolutionalDecoder(nn.Module):
    """Convolutional decoder: embedded target tokens in, hidden states for the output projection out."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.stack = ConvolutionalStack(config, config.decoder_layers, causal=True)
        self.attentions = nn.ModuleList(SourceAttention(config) for _ in range(config.decoder_layers))

    def source(
        self, states: Float[Tensor, "B N D"], embedded: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]
    ) -> ConvolvedSource:
        """Prepare the hidden states of an encoder and the embedded source tokens for attention.

        As each layer attends to the encoder, its gradient is divided by their number (section 3.4).
        """
        # B N D, with a gradient from every decoder layer.
        states = ScaledGradient.apply(states, 1 / len(self.attentions))
        return ConvolvedSource(states, (states + embedded) * HALF, padding_mask)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: AttentionMask,
        source: ConvolvedSource,
        cache: ConvolutionCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of embedded target tokens, each from the source and earlier tokens.

        Args:
            x: the last T tokens of each row.
            mask: which tokens are real.
            source: the source of each row.
            cache: what the layers have seen of earlier tokens; None: there are none.
        """

        def attend(layer: int, outputs: Tensor, embedded: Tensor) -> Tensor:
            return self.attentions[layer](outputs, embedded, source)

        return self.stack(x, mask, cache, attend)
