"""Convolutional decoder with attention in each layer, "multi-step attention" (Gehring et al. 2017, section 3.3).

B batch, T target tokens, C columns, N source tokens, D model, E channels, R rows.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.convolutional.layers import HALF, ConvolutionalStack, ConvolutionCache, NormalisedLinear
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.nn.attention_scores import attention_weights
from heedful.nn.masks import AttentionMask


@dataclass(frozen=True)
class ConvolvedSource:
    """Source as a convolutional decoder sees it.

    Attributes:
        keys: the hidden states of the source tokens, z.
        values: the same with the embeddings of the tokens added, z + e, so that a decoder finds single words too.
        padding_mask: True for real tokens.
    """

    keys: Float[Tensor, "R N D"]
    values: Float[Tensor, "R N D"]
    padding_mask: Bool[Tensor, "R N"]

    def select(self, rows: Int[Tensor, " R2"]) -> "ConvolvedSource":
        """Keep, reorder or repeat rows."""
        return ConvolvedSource(self.keys[rows], self.values[rows], self.padding_mask[rows])


class ScaledGradient(torch.autograd.Function):
    """Identity whose gradient is multiplied by a number."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        """Return `x` itself."""
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        """Multiply the gradient of `x` by the factor that `forward` was given."""
        return gradients[0] * ctx.factor, None


class SourceAttention(nn.Module):
    """Attention of a decoder layer to the source, by the layer's outputs and the embeddings of the tokens read last.

    Sums of two are scaled by sqrt(0.5) here too, as in the authors' code. The context, a mean of N vectors, is scaled
    by N sqrt(1/N), so that it keeps their variance where all weights are alike (section 3.4).
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
        queries = (self.query(x) + embedded) * HALF
        weights = self.alignment(attention_weights(queries @ source.keys.transpose(1, 2), source.padding_mask))
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
