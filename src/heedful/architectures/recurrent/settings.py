"""Settings of recurrent models, and their rules: Elman networks, LSTM and GRU, with or without attention."""

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.model import Layers, Poolers, TextModelConfig
from heedful.config.rules import REMARKS, RULES, Rule
from heedful.config.schema import Recipe
from heedful.config.setting import Setting
from heedful.wording import counted

Scores = Literal["none", "additive", "dot", "general", "concat"]


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(TextModelConfig):
    """Recurrent model settings: by default LSTM layers and, in an encoder-decoder, Luong's general attention."""

    architecture: str = "recurrent"
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """Recurrent cell (Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014)."""

    layers: Layers = 1
    """Number of encoder layers, and of decoder layers."""

    bidirectional: bool = True
    """If `true`, an encoder reads in both directions, with d_model / 2 units in each."""

    residual: bool = False
    """If `true`, the input of each layer is added to its output (Wu et al. 2016, section 3.1)."""

    layer_norm: bool = False
    """If `true`, the input of each layer is normalised (Ba et al. 2016)."""

    variational_dropout: Annotated[bool, Setting(resume="ask")] = False
    """If `true`, the same units are dropped at all steps (Gal & Ghahramani 2016)."""

    attention: Scores = "general"
    """Attention score: `additive` (Bahdanau et al. 2015), or `dot`, `general` or `concat` (Luong et al. 2015)."""

    input_feeding: bool = False
    """If `true`, a decoder with the attention of Luong et al. also reads its previous output (section 3.3)."""

    pooler: Poolers = "none"

    def shape(self) -> str:
        parts = [f"{self.cell} cells", counted(self.layers, "layers"), f"d_model {self.d_model}"]
        if self.family == "encoder_decoder":
            parts += [f"{self.attention} attention"] if self.attention != "none" else ["no attention"]
        return ", ".join(parts)


def recurrent(recipe: Recipe) -> RecurrentConfig:
    return cast("RecurrentConfig", recipe.model)


RULES[RecurrentConfig] = (
    Rule(
        KEYS.model.d_model,
        lambda r: recurrent(r).bidirectional and r.model.d_model % 2 != 0 and not FAMILIES[r.model.family].causal,
        "a bidirectional encoder has half of its units in each direction, but model.d_model = {r.model.d_model} is "
        "odd; make it even, or set model.bidirectional = false",
    ),
    Rule(
        recurrent(KEYS).input_feeding,
        lambda r: recurrent(r).input_feeding and recurrent(r).attention in ("none", "additive"),
        'with model.attention = "{r.model.attention}" a decoder has no input feeding; set model.input_feeding = false, '
        'or model.attention = "general"',
    ),
)

REMARKS[RecurrentConfig] = (
    Rule(
        recurrent(KEYS).attention,
        lambda r: (
            not FAMILIES[r.model.family].pairs
            and (recurrent(r).attention != RecurrentConfig.attention or recurrent(r).input_feeding)
        ),
        "model.attention and model.input_feeding are for encoder-decoders: in a model of family {r.model.family} "
        "they have no effect",
    ),
)
