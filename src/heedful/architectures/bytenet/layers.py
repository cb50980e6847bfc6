"""Residual blocks of dilated convolutions, in a stack and in a decoder over an encoder (Kalchbrenner et al. 2016).

B batch, T tokens, C columns, W columns of an encoder, D model (2d in the paper), E channels inside a block (d), R rows,
K kernel size.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.architectures.bytenet.settings import ByteNetConfig
from heedful.nn.dropout import Dropout
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedConvolutionalStack
from heedful.nn.spacing import ConvolutionCache, Spacing, windows


class DilatedConvolution(nn.Module):
    """Convolution over K columns that are `dilation` columns apart (section 3.5), as a linear layer over windows."""

    parameter_kind = "convolutions"

    def __init__(self, config: ByteNetConfig, dilation: int) -> None:
        super().__init__()
        self.size, self.dilation = config.kernel_size, dilation
        self.linear = nn.Linear(self.size * config.width, config.width)

    def forward(self, x: Float[Tensor, "B C2 E"]) -> Float[Tensor, "B C E"]:
        return self.linear(windows(x, self.size, self.dilation))


class ResidualBlock(nn.Module):
    """Residual block with ReLUs: 1 x 1, dilated and 1 x 1 convolutions, each after layer norm and ReLU (figure 3).

    A 1 x 1 convolution is a linear layer.
    """

    def __init__(self, config: ByteNetConfig, dilation: int) -> None:
        super().__init__()
        self.norm_in = nn.LayerNorm(config.d_model)
        self.narrow = nn.Linear(config.d_model, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.convolution = DilatedConvolution(config, dilation)
        self.norm_out = nn.LayerNorm(config.width)
        self.widen = nn.Linear(config.width, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "B C D"], real: Bool[Tensor, "B C 1"], extend: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B C D"]:
        """Compute the residual stream after the block.

        Args:
            x: The residual stream.
            real: True for columns with a token.
            extend: Adds (K - 1) x dilation columns, zeros or cached ones, to the inputs of the dilated convolution.
        """
        inner = F.relu(self.norm(self.narrow(F.relu(self.norm_in(x)))))
        # Columns without a token are zeros here, as they are beyond the ends of a text: norms and biases filled them.
        inner = self.convolution(extend(inner * real))
        return x + self.dropout(self.widen(F.relu(self.norm_out(inner))))


class ByteNetStack(nn.Module):
    """Stack of residual blocks over embedded tokens, then a 1 x 1 convolution and a ReLU (section 3.6).

    The dilations are 1, 2, 4, ... up to `max_dilation`, and then again from 1. In a causal stack, a token does not
    depend on later ones. Padding and other documents in a row have no effect.
    """

    def __init__(self, config: ByteNetConfig, layers: int, *, causal: bool) -> None:
        super().__init__()
        dilations = [2 ** (layer % config.max_dilation.bit_length()) for layer in range(layers)]
        self.dropout = Dropout(config.dropout)
        self.enter = nn.Identity()  # the inspector records the embedded tokens here
        self.layers = nn.ModuleList(ResidualBlock(config, dilation) for dilation in dilations)
        self.leave = nn.Sequential(nn.Linear(config.d_model, config.d_model), nn.LayerNorm(config.d_model), nn.ReLU())
        self.width = config.width
        # A convolution has `gap` fewer output columns than input columns. If it is causal ("masked", section 3.4), its
        # window ends with the current column; otherwise, this column is in the middle.
        self.gaps = [(config.kernel_size - 1) * dilation for dilation in dilations]
        before = self.gaps if causal else [(config.kernel_size - 1) // 2 * dilation for dilation in dilations]
        self.paddings = [(0, 0, left, gap - left) for left, gap in zip(before, self.gaps, strict=True)]

    def forward(
        self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: ConvolutionCache | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of padded rows of embedded tokens; those of padding are zeros.

        Args:
            x: The last T tokens of each row.
            mask: Which tokens are real, and where documents begin.
            cache: The inputs of the convolutions for earlier tokens.
        """
        # The longest gap keeps documents in one row apart in all blocks.
        spacing = Spacing(mask.padding_mask[:, -x.size(1) :], mask.query_positions, max(self.gaps))
        x = self.enter(spacing.spread(self.dropout(x)))  # B C D
        for number, (block, padding) in enumerate(zip(self.layers, self.paddings, strict=True)):
            # A convolution reads earlier columns: cached ones in a search, otherwise zeros.
            extend = partial(cache.extend, number) if cache else partial(F.pad, pad=padding)
            x = block(x, spacing.real, extend)
        return self.dropout(spacing.collect(self.leave(x)))

    def named(self, name: str, sequence: str) -> NamedConvolutionalStack:
        return NamedConvolutionalStack(name, sequence, self)

    def begin(self, rows: int) -> ConvolutionCache:
        weight = self.get_parameter("leave.0.weight")
        return ConvolutionCache([weight.new_zeros(rows, gap, self.width) for gap in self.gaps])


class ByteNetDecoder(nn.Module):
    """Decoder that is stacked on an encoder: with target token t, it reads column t of the encoder (section 3.1).

    Targets may be longer than the encoder (section 3.2). Their other tokens read zeros.
    """

    def __init__(self, config: ByteNetConfig) -> None:
        super().__init__()
        self.join = nn.Linear(2 * config.d_model, config.d_model)
        self.stack = ByteNetStack(config, config.decoder_layers, causal=True)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: AttentionMask,
        columns: Float[Tensor, "B W D"],
        cache: ConvolutionCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of the last T target tokens of each row; the cache covers earlier tokens.

        Args:
            x: The embedded target tokens.
            mask: Which target tokens are real.
            columns: The columns of the encoder, the last of which is zeros.
            cache: The inputs of the convolutions for earlier tokens.
        """
        rows = torch.arange(len(x), device=x.device)[:, None]
        aligned = columns[rows, mask.query_positions.clamp(max=columns.size(1) - 1)]  # B T D
        return self.stack(self.join(torch.cat([x, aligned], dim=-1)), mask, cache)


class Unfolding(nn.Module):
    """Layout of a source in the columns of an encoder, whose number is that of expected target tokens (section 3.2).

    A source of N tokens has a N + b columns, rounded up: first its tokens, then copies of a trained vector, the
    embedding of the paper's padding character.
    """

    parameter_kind = "embeddings"

    def __init__(self, config: ByteNetConfig) -> None:
        super().__init__()
        self.ratio, self.extra = config.target_ratio, config.target_extra
        self.blank = nn.Embedding(1, config.d_model)

    def forward(
        self, x: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B W D"], Bool[Tensor, "B W"]]:
        """Lay out embedded source tokens in columns; return the columns, and which of them belong to each row."""
        lengths = padding_mask.sum(1, keepdim=True)  # B 1
        # In float64, because in float32 the product of 1.07 and 100 is more than 107.
        widths = (self.ratio * lengths.double() + self.extra).ceil().long()
        column = torch.arange(int(widths.max()), device=x.device)  # (W,)
        # The real tokens move to the first columns: wherever the padding was, columns count from the first token.
        order = padding_mask.int().argsort(dim=1, descending=True, stable=True)
        tokens = x[torch.arange(len(x), device=x.device)[:, None], order]
        tokens = F.pad(tokens, (0, 0, 0, len(column) - tokens.size(1)))  # negative padding cuts columns off
        blank = self.blank(torch.zeros_like(column)).to(x.dtype)
        return torch.where((column < lengths)[..., None], tokens, blank), column < widths
