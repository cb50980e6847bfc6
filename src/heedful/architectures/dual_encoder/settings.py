"""Settings of dual encoders, such as CLIP, and their rules."""

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
    """Dual encoder settings (CLIP, Radford et al. 2021): two Transformers, one for images and one for texts.

    The keys of a Transformer describe the image encoder. The text encoder has separate keys for its sizes, such as
    `text_d_model`; it has no norm on its embeddings, and the default values of `kv_heads`, `d_k` and `d_v`. It shares
    the other keys.
    """

    architecture: str = "dual_encoder"
    family: Literal["encoder"] = "encoder"
    norm: Literal["post", "pre", "none"] = "pre"
    scale_embeddings: bool = False
    pooler: Literal["none"] = "none"
    text_d_model: Count = 512
    """Size of the text encoder's embeddings and hidden states."""

    text_d_ff: Count = 2048
    """Size of the hidden layer in the text encoder's feed-forward networks."""

    text_heads: Heads = 8
    """Number of attention heads in the text encoder."""

    text_layers: Layers = 6
    """Number of layers in the text encoder."""

    text_max_positions: Positions = 77
    """Size of the text encoder's table of learned positions. The other encodings have no limit."""

    text_causal: bool = True
    """If `true`, a text token attends only to earlier tokens, as in GPT, otherwise to all tokens, as in BERT."""

    text_pooling: Poolings = "last"
    """How the hidden states of a text become one vector. `last` takes that of `<eos>`, as in CLIP. For images, set
    `pooling`."""

    projection: Count = 512
    """Size of the vectors of images and texts."""

    temperature: Positive = 0.07
    """Initial divisor of cosine similarities. It is trained, and stays at 0.01 or above."""

    def image(self) -> ModelConfig:
        # Keys of the text encoder are unknown to `ModelConfig`.
        common = {key: value for key, value in asdict(self).items() if key in ModelConfig.__dataclass_fields__}
        return ModelConfig(**{**common, "architecture": ModelConfig.architecture})

    def text(self) -> ModelConfig:
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
            # The numbers and sizes of the image encoder's heads do not fit; None derives them from `heads` and
            # `d_model`.
            kv_heads=None,
            d_k=None,
            d_v=None,
        )

    def shape(self) -> str:
        texts = (
            f"{counted(self.text_layers, 'layers')}, d_model {self.text_d_model}, d_ff {self.text_d_ff}, "
            f"{counted(self.text_heads, 'heads')} of {self.text_d_model // self.text_heads}"
        )
        return f"images: {super().shape()}; texts: {texts}; vectors of {self.projection}"


def dual(recipe: Recipe) -> DualEncoderConfig:
    return cast("DualEncoderConfig", recipe.model)


def learned(recipe: Recipe) -> bool:
    return dual(recipe).positions == "learned"


RULES[DualEncoderConfig] = (
    Rule(
        KEYS.task,
        lambda r: r.task != TASK and not TASKS.is_custom(r.task),
        'model.architecture = "dual_encoder" reads images and texts, but the task "{r.task}" has only one of the two; '
        f'set task = "{TASK}", or leave model.architecture out',
    ),
    Rule(
        dual(KEYS).text_heads,
        lambda r: dual(r).text_d_model % dual(r).text_heads != 0,
        "model.text_d_model = {r.model.text_d_model} is not divisible by model.text_heads = {r.model.text_heads}; "
        "choose a number of heads that divides model.text_d_model",
    ),
    Rule(
        dual(KEYS).text_d_model,
        lambda r: dual(r).positions == "sinusoidal" and dual(r).text_d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, but model.text_d_model = {r.model.text_d_model} is "
        'odd; make it even, or set model.positions = "learned"',
    ),
    Rule(
        dual(KEYS).text_d_model,
        lambda r: dual(r).positions == "rotary" and dual(r).text_d_model // dual(r).text_heads % 2 != 0,
        "rotary positions need an even head size, but that of the text encoder is odd; make "
        "model.text_d_model / model.text_heads even",
    ),
    Rule(
        dual(KEYS).text_max_positions,
        lambda r: learned(r) and r.data.max_length > dual(r).text_max_positions,
        "a text may have data.max_length = {r.data.max_length} tokens, but the model learns only "
        "model.text_max_positions = {r.model.text_max_positions}; raise it, or lower data.max_length",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: r.train.batch_tokens < r.data.max_length,
        "a text of data.max_length = {r.data.max_length} tokens does not fit into a batch of train.batch_tokens = "
        "{r.train.batch_tokens}; raise batch_tokens, or lower max_length",
    ),
    Rule(
        KEYS.model.segments,
        lambda r: r.model.segments > 0,
        "a dual encoder reads one image or one text at a time; set model.segments = 0",
    ),
    Rule(
        KEYS.model.source_vectors,
        lambda r: bool(r.model.source_vectors or r.model.target_vectors),
        "a dual encoder starts with random token vectors; leave model.source_vectors and model.target_vectors out",
    ),
    Rule(
        KEYS.image.mixup,
        lambda r: r.image.mixup > 0,
        "a mixture of two images has no matching text; set image.mixup = 0.0",
    ),
)
