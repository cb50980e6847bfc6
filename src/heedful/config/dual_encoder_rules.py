"""Rules for recipes of dual encoders: one task, and sizes of the text encoder that fit together."""

from typing import cast

from heedful.config.dual_encoder import DualEncoderConfig
from heedful.config.rule import Rule
from heedful.config.schema import Recipe

TASK = "image_text_retrieval"


def dual(recipe: Recipe) -> DualEncoderConfig:
    """The settings of the dual encoder of a recipe."""
    return cast("DualEncoderConfig", recipe.model)


def learned(recipe: Recipe) -> bool:
    """True if the text encoder of a recipe learns a table of positions."""
    return dual(recipe).positions == "learned"


NEEDED = Rule(
    "model.architecture",
    lambda r: r.task == TASK and ":" not in r.model.architecture and not isinstance(r.model, DualEncoderConfig),
    f'task = "{TASK}" is learned by an encoder of pictures and one of texts, and model.architecture is '
    '"{r.model.architecture}"; leave it out, or set model.architecture = "dual_encoder"',
)

RULES = (
    Rule(
        "task",
        lambda r: r.task != TASK and ":" not in r.task,
        'model.architecture = "dual_encoder" reads pictures and texts, and the task "{r.task}" has only one of them; '
        f'set task = "{TASK}", or leave model.architecture out',
    ),
    Rule(
        "model.text_heads",
        lambda r: dual(r).text_d_model % dual(r).text_heads != 0,
        "model.text_d_model = {r.model.text_d_model} cannot be divided by model.text_heads = {r.model.text_heads}; "
        "choose a number of heads that divides it",
    ),
    Rule(
        "model.text_d_model",
        lambda r: dual(r).positions == "sinusoidal" and dual(r).text_d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, and model.text_d_model = {r.model.text_d_model} is "
        'odd; make it even, or set model.positions = "learned"',
    ),
    Rule(
        "model.text_d_model",
        lambda r: dual(r).positions == "rotary" and dual(r).text_d_model // dual(r).text_heads % 2 != 0,
        "rotary positions turn the dimensions of a head in pairs, and a head of the text encoder has an odd number of "
        "them; make model.text_d_model / model.text_heads even",
    ),
    Rule(
        "model.text_max_positions",
        lambda r: learned(r) and r.data.max_length > dual(r).text_max_positions,
        "a text may have data.max_length = {r.data.max_length} tokens, more than the model.text_max_positions = "
        "{r.model.text_max_positions} that are learned; raise model.text_max_positions, or lower data.max_length",
    ),
    Rule(
        "train.batch_tokens",
        lambda r: r.train.batch_tokens < r.data.max_length,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a text of data.max_length = "
        "{r.data.max_length} tokens; raise batch_tokens, or lower max_length",
    ),
    Rule(
        "model.segments",
        lambda r: r.model.segments > 0,
        "a dual encoder reads one picture or one text at a time; set model.segments = 0",
    ),
    Rule(
        "model.source_vectors",
        lambda r: bool(r.model.source_vectors or r.model.target_vectors),
        "a dual encoder begins with random vectors of tokens; leave model.source_vectors and model.target_vectors out",
    ),
    Rule(
        "image.mixup",
        lambda r: r.image.mixup > 0,
        "a mixture of two pictures has no text; set image.mixup = 0.0",
    ),
)
