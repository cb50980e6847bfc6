"""Options of dual encoders: an encoder of pictures and one of texts with a common space of vectors, as in CLIP."""

from dataclasses import asdict, dataclass
from typing import Literal

from heedful.config.model import Heads, Layers, ModelConfig, Poolings, Positions
from heedful.config.setting import Count, Positive
from heedful.wording import counted


@dataclass(frozen=True, kw_only=True)
class DualEncoderConfig(ModelConfig):
    """Settings of a dual encoder (CLIP, Radford et al. 2021): two Transformers, of pictures and of texts.

    The keys of a Transformer are those of the picture encoder. The text encoder has sizes of its own, no norm on its
    embeddings, and the other keys in common with it.
    """

    architecture: str = "dual_encoder"
    family: Literal["encoder"] = "encoder"
    norm: Literal["post", "pre"] = "pre"
    scale_embeddings: bool = False
    pooler: Literal["none"] = "none"
    text_d_model: Count = 512
    """Size of embeddings and hidden states of the text encoder."""

    text_d_ff: Count = 2048
    """Size of the hidden layer of feed-forward networks of the text encoder."""

    text_heads: Heads = 8
    """Number of attention heads of the text encoder."""

    text_layers: Layers = 6
    """Number of layers of the text encoder."""

    text_max_positions: Positions = 77
    """Size of the text encoder's table of learned positions. The other encodings have no limit."""

    text_causal: bool = True
    """If `true`, a token of a text attends to earlier tokens only, as in GPT, otherwise to all, as in BERT."""

    text_pooling: Poolings = "last"
    """How hidden states of a text become one vector. `last` is that of `<eos>`, as in CLIP. For images: `pooling`."""

    projection: Count = 512
    """Size of the vectors of images and texts."""

    temperature: Positive = 0.07
    """Divisor of cosine similarities. It is trained from this value, to at least 0.01."""

    def text(self) -> ModelConfig:
        """The settings of the text encoder, as those of a Transformer by itself."""
        common = {key: value for key, value in asdict(self).items() if key in ModelConfig.__dataclass_fields__}
        own = {
            "architecture": ModelConfig.architecture,
            "family": "decoder" if self.text_causal else "encoder",
            "d_model": self.text_d_model,
            "d_ff": self.text_d_ff,
            "heads": self.text_heads,
            "encoder_layers": self.text_layers,
            "decoder_layers": self.text_layers,
            "max_positions": self.text_max_positions,
            "pooling": self.text_pooling,
            "embedding_norm": False,
            **dict.fromkeys(("kv_heads", "d_k", "d_v")),
        }
        return ModelConfig(**{**common, **own})

    def shape(self) -> str:
        """Describe the shape of a dual encoder in words: both encoders, and the size of the common space."""
        texts = (
            f"{counted(self.text_layers, 'layers')}, d_model {self.text_d_model}, d_ff {self.text_d_ff}, "
            f"{counted(self.text_heads, 'heads')} of {self.text_d_model // self.text_heads}"
        )
        return f"pictures: {super().shape()}; texts: {texts}; vectors of {self.projection}"
