"""Options of recurrent models: Elman networks, LSTM and GRU, with or without attention."""

from dataclasses import dataclass
from typing import Annotated, Literal

from heedful.config.model import Layers, Poolers, TextModelConfig
from heedful.config.setting import Setting
from heedful.wording import counted

Scores = Literal["none", "additive", "dot", "general", "concat"]


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(TextModelConfig):
    """Settings of a recurrent model; by default LSTM layers, and in an encoder-decoder Luong's general attention."""

    architecture: str = "recurrent"
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """Recurrent cell (Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014)."""

    layers: Layers = 1
    """Number of layers of the encoder, and of the decoder."""

    bidirectional: bool = True
    """If `true`, an encoder reads in both directions, with d_model / 2 units in each."""

    residual: bool = False
    """If `true`, the input of each layer is added to its output (Wu et al. 2016, section 3.1)."""

    layer_norm: bool = False
    """If `true`, the input of each layer is normalised (Ba et al. 2016)."""

    variational_dropout: Annotated[bool, Setting(resume="ask")] = False
    """If `true`, the same units are dropped at all steps (Gal & Ghahramani 2016)."""

    attention: Scores = "general"
    """Score of the attention: `additive` (Bahdanau et al. 2015); `dot`, `general`, `concat` (Luong et al. 2015)."""

    input_feeding: bool = False
    """If `true`, a decoder with the attention of Luong et al. also reads its last output (section 3.3)."""

    pooler: Poolers = "none"

    def shape(self) -> str:
        """Describe the shape of a recurrent model in words: cells, layers, sizes and attention."""
        parts = [f"{self.cell} cells", counted(self.layers, "layers"), f"d_model {self.d_model}"]
        if self.family == "encoder_decoder":
            parts += [f"{self.attention} attention"] if self.attention != "none" else ["no attention"]
        return ", ".join(parts)
