"""Settings of ByteNet: residual blocks of dilated convolutions."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from heedful.config.model import Layers, Poolers, TextModelConfig
from heedful.config.setting import Count
from heedful.wording import counted


@dataclass(frozen=True, kw_only=True)
class ByteNetConfig(TextModelConfig):
    """ByteNet settings (Kalchbrenner et al. 2016); the defaults, except the size, are those of the paper's translator.

    The paper's `d_model` is 1600.
    """

    architecture: str = "bytenet"
    encoder_layers: Layers = 30
    """Number of residual blocks in the encoder."""

    decoder_layers: Layers = 30
    """Number of residual blocks in the decoder."""

    kernel_size: Count = 3
    """Number of columns that a dilated convolution reads."""

    max_dilation: Annotated[Count, Le(100_000)] = 16
    """Largest dilation: it is 1 in the first block and doubles from block to block up to this number, then it starts
    again from 1 (section 3.5)."""

    channels: Count | None = None
    """Size of the vectors inside a residual block. Not set: d_model / 2 (section 3.6)."""

    target_ratio: Annotated[float, Ge(1), Le(100)] = 1.2
    """Number of columns of the encoder for each source token (a in formula 2). The number of columns is the length of
    the longest target that is expected."""

    target_extra: Annotated[int, Ge(0), Le(10_000)] = 0
    """Number of further columns of the encoder (b in formula 2)."""

    pooler: Poolers = "none"

    @property
    def width(self) -> int:
        return self.channels or max(1, self.d_model // 2)

    def shape(self) -> str:
        blocks = {
            "encoder_decoder": f"{self.encoder_layers}+{self.decoder_layers} blocks",
            "encoder": counted(self.encoder_layers, "blocks"),
            "decoder": counted(self.decoder_layers, "blocks"),
        }
        return (
            f"dilated convolutions, {blocks[self.family]}, kernel size {self.kernel_size}, "
            f"dilation up to {self.max_dilation}, d_model {self.d_model}, {counted(self.width, 'channels')}"
        )
