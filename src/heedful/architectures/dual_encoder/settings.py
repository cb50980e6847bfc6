"""Settings of dual encoders, such as CLIP, and their rules: an encoder of images and one of texts with one space."""

from dataclasses import asdict, dataclass, replace
from typing import Literal, cast

from heedful.config.keys import KEYS
from heedful.config.model import Heads, Layers, ModelConfig, Poolings, Positions, TextModelConfig, TransformerSettings
from heedful.config.rules import RULES, Rule
from heedful.config.schema import Recipe
from heedful.config.setting import Count, Positive
from heedful.registry import TASKS
from heedful.wording import counted

TASK = "image_text_retrieval"


@dataclass(frozen=True, kw_only=True)
class DualEncoderConfig(TransformerSettings, TextModelConfig):
    """Settings of a dual encoder (CLIP, Radford et al. 2021): two Transformers, of images and of texts.

    The keys of a Transformer are those of the image encoder. The text encoder has other sizes, no norm on its
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

    def image(self) -> ModelConfig:
        """The settings of the image encoder, as those of a Transformer by itself."""
        common = {key: value for key, value in asdict(self).items() if key in ModelConfig.__dataclass_fields__}
        return ModelConfig(**{**common, "architecture": ModelConfig.architecture})

    def text(self) -> ModelConfig:
        """The settings of the text encoder, as those of a Transformer by itself."""
        return replace(
            self.image(),
            family="decoder" if self.text_causal else "encoder",
            d_model=self.text_d_model,
            d_ff=self.text_d_ff,
            heads=self.text_heads,
            encoder_layers=self.text_layers,
            decoder_layers=self.text_layers,
            max_positions=self.text_max_positions,
            pooling=self.text_pooling,
            embedding_norm=False,
            kv_heads=None,
            d_k=None,
            d_v=None,
        )

    def shape(self) -> str:
        texts = (
            f"{counted(self.text_layers, 'layers')}, d_model {self.text_d_model}, d_ff {self.text_d_ff}, "
            f"{counted(self.text_heads, 'heads')} of {self.text_d_model // self.text_heads}"
        )
        return f"pictures: {super().shape()}; texts: {texts}; vectors of {self.projection}"


def dual(recipe: Recipe) -> DualEncoderConfig:
    return cast("DualEncoderConfig", recipe.model)


def learned(recipe: Recipe) -> bool:
    return dual(recipe).positions == "learned"


RULES[DualEncoderConfig] = (
    Rule(
        KEYS.task,
        lambda r: r.task != TASK and not TASKS.is_own(r.task),
        'model.architecture = "dual_encoder" reads pictures and texts, and the task "{r.task}" has only one of them; '
        f'set task = "{TASK}", or leave model.architecture out',
    ),
    Rule(
        dual(KEYS).text_heads,
        lambda r: dual(r).text_d_model % dual(r).text_heads != 0,
        "model.text_d_model = {r.model.text_d_model} cannot be divided by model.text_heads = {r.model.text_heads}; "
        "choose a number of heads that divides it",
    ),
    Rule(
        dual(KEYS).text_d_model,
        lambda r: dual(r).positions == "sinusoidal" and dual(r).text_d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, and model.text_d_model = {r.model.text_d_model} is "
        'odd; make it even, or set model.positions = "learned"',
    ),
    Rule(
        dual(KEYS).text_d_model,
        lambda r: dual(r).positions == "rotary" and dual(r).text_d_model // dual(r).text_heads % 2 != 0,
        "rotary positions turn the dimensions of a head in pairs, and a head of the text encoder has an odd number of "
        "them; make model.text_d_model / model.text_heads even",
    ),
    Rule(
        dual(KEYS).text_max_positions,
        lambda r: learned(r) and r.data.max_length > dual(r).text_max_positions,
        "a text may have data.max_length = {r.data.max_length} tokens, more than the model.text_max_positions = "
        "{r.model.text_max_positions} that are learned; raise model.text_max_positions, or lower data.max_length",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: r.train.batch_tokens < r.data.max_length,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a text of data.max_length = "
        "{r.data.max_length} tokens; raise batch_tokens, or lower max_length",
    ),
    Rule(
        KEYS.model.segments,
        lambda r: r.model.segments > 0,
        "a dual encoder reads one picture or one text at a time; set model.segments = 0",
    ),
    Rule(
        KEYS.model.source_vectors,
        lambda r: bool(r.model.source_vectors or r.model.target_vectors),
        "a dual encoder begins with random vectors of tokens; leave model.source_vectors and model.target_vectors out",
    ),
    Rule(
        KEYS.image.mixup,
        lambda r: r.image.mixup > 0,
        "a mixture of two pictures has no text; set image.mixup = 0.0",
    ),
)
