"""Settings of convolutional models: gated convolutions as in ConvS2S."""

from dataclasses import dataclass
from typing import Literal

from heedful.config.model import Layers, Poolers, Positions, TextModelConfig
from heedful.config.setting import Count
from heedful.wording import counted


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig(TextModelConfig):
    """Settings of gated convolutional models (Gehring et al. 2017; Dauphin et al. 2017).

    The default numbers of layers are those of small published models.
    """

    architecture: str = "convolutional"
    encoder_layers: Layers = 4
    """Number of encoder layers."""

    decoder_layers: Layers = 3
    """Number of decoder layers."""

    kernel_size: Count = 3
    """Width of a convolution in tokens."""

    channels: Count | None = None
    """Size of the hidden states between convolutions. Not set: `d_model`."""

    positions: Literal["learned", "none"] = "learned"
    """Position encoding."""

    max_positions: Positions = 1024
    """Size of the table of learned positions."""

    scale_embeddings: bool = False
    """If `true`, token vectors are multiplied by sqrt(d_model). Otherwise, they are initially as small as the position
    vectors (section 3.5)."""

    pooler: Poolers = "none"

    @property
    def width(self) -> int:
        return self.channels or self.d_model

    @property
    def learned_positions(self) -> int | None:
        return self.max_positions if self.positions == "learned" else None

    def shape(self) -> str:
        layers = {
            "encoder_decoder": f"{self.encoder_layers}+{self.decoder_layers} layers",
            "encoder": counted(self.encoder_layers, "layers"),
            "decoder": counted(self.decoder_layers, "layers"),
        }
        return (
            f"gated convolutions, {layers[self.family]}, kernel size {self.kernel_size}, d_model {self.d_model}, "
            f"{counted(self.width, 'channels')}"
        )
