"""Read and write CLIP in the Hugging Face format: `CLIPModel`, with its tokenizer and image settings.

D model, C channels, P pixels per patch side.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from heedful.architectures.dual_encoder.model import MAX_SCALE, DualEncoder
from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.config.keys import KEYS
from heedful.config.modalities import ImageConfig
from heedful.config.schema import Recipe
from heedful.convert.exporter import Exporter
from heedful.convert.image_settings import CLIP, PREPROCESSOR, image_settings, preprocessor
from heedful.convert.model import (
    DTYPE,
    PRECISIONS,
    Format,
    Model,
    converted_recipe,
    read_tokenizer,
    read_weights,
    renumbering_note,
    shapes_of,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, Misfit, Settings, misfits_among, read_config
from heedful.convert.weights import Names, Weights, check_weights, reorder_rows, split_by_name, with_zero_biases
from heedful.errors import InputError
from heedful.nn.patches import PatchEmbedding
from heedful.tasks.image_text_retrieval import ImageTextRetrieval
from heedful.text.pipeline import BOS, EOS, PAD

TASK = "image_text_retrieval"
MAX_LOG_SCALE = math.log(MAX_SCALE)


def blocks(ours: str, theirs: str) -> dict[str, str]:
    attention = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj"}
    parts = {
        **{f"self_attention.{name}": f"self_attn.{other}" for name, other in attention.items()},
        "self_residual.norm": "layer_norm1",
        "feed_forward.up": "mlp.fc1",
        "feed_forward.down": "mlp.fc2",
        "feed_residual.norm": "layer_norm2",
    }
    return {f"{ours}.blocks.#.{part}": f"{theirs}.layers.#.{other}" for part, other in parts.items()}


IMAGES, TEXTS = "pictures", "texts"  # the encoders in heedful's weight names
CLASS_TOKEN = f"{IMAGES}.backbone.embedding.class_token"
PATCHES, PATCH_BIAS = (f"{IMAGES}.backbone.embedding.stem.project.{name}" for name in ("weight", "bias"))
POSITIONS = f"{IMAGES}.backbone.stack.positions.table.weight"
EMBEDDING = f"{TEXTS}.backbone.embedding.weight"
SCALE, THEIR_SCALE = "log_scale", "logit_scale"  # a scalar, which heedful stores as a vector of size 1

NAMES = Names(
    {
        CLASS_TOKEN: "vision_model.embeddings.class_embedding",
        f"{IMAGES}.backbone.embedding.stem.project": "vision_model.embeddings.patch_embedding",
        f"{IMAGES}.backbone.stack.positions.table": "vision_model.embeddings.position_embedding",
        f"{IMAGES}.backbone.stack.embedding_norm": "vision_model.pre_layrnorm",  # this is the format's spelling
        **blocks(f"{IMAGES}.backbone.stack", "vision_model.encoder"),
        f"{IMAGES}.backbone.stack.norm": "vision_model.post_layernorm",
        f"{IMAGES}.project": "visual_projection",
        f"{TEXTS}.backbone.embedding": "text_model.embeddings.token_embedding",
        f"{TEXTS}.backbone.stack.positions.table": "text_model.embeddings.position_embedding",
        **blocks(f"{TEXTS}.backbone.stack", "text_model.encoder"),
        f"{TEXTS}.backbone.stack.norm": "text_model.final_layer_norm",
        f"{TEXTS}.project": "text_projection",
    }
)
COMPUTED = r".*\.position_ids"
VISION, TEXT = "vision_config", "text_config"
TEXT_ACTIVATION = f"{TEXT}.hidden_act"

SETTINGS = Settings(
    model_type="clip",
    classes="CLIP",
    tasks=(ImageTextRetrieval,),
    keys={
        f"{VISION}.hidden_size": "d_model",
        f"{VISION}.intermediate_size": "d_ff",
        f"{VISION}.num_attention_heads": "heads",
        f"{VISION}.num_hidden_layers": "encoder_layers",
        f"{VISION}.positions": "max_positions",  # follows from the image and patch sizes
        f"{TEXT}.hidden_size": "text_d_model",
        f"{TEXT}.intermediate_size": "text_d_ff",
        f"{TEXT}.num_attention_heads": "text_heads",
        f"{TEXT}.num_hidden_layers": "text_layers",
        f"{TEXT}.max_position_embeddings": "text_max_positions",
        **{f"{part}.layer_norm_eps": "norm_eps" for part in (VISION, TEXT)},
        **{f"{part}.attention_dropout": "attention_dropout" for part in (VISION, TEXT)},
        "projection_dim": "projection",
    },
    activation=f"{VISION}.hidden_act",
    fixed={
        "architecture": DualEncoderConfig.architecture,
        "family": "encoder",
        "positions": "learned",
        "norm": "pre",
        "embedding_norm": True,
        "dropout": 0.0,
        "init": "scaled",
    },
    needed={},
    options=DualEncoderConfig,
)
_DEFAULTS = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "attention_dropout": 0.0}
DEFAULTS: dict[str, Any] = {  # for settings that a config.json may omit
    "projection_dim": 512,
    VISION: {
        **_DEFAULTS,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_channels": 3,
        "image_size": 224,
        "patch_size": 32,
    },
    TEXT: {
        **_DEFAULTS,
        "vocab_size": 49_408,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_attention_heads": 8,
        "max_position_embeddings": 77,
    },
}


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face CLIP.

    CLIP has no patch bias, so a bias of zeros is added. It also lacks <pad> and <unk>, which get zero vectors and do
    not occur in texts.
    """
    config, where = flat_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    if config[TEXT_ACTIVATION] != config[SETTINGS.activation]:
        raise InputError(
            f"{folder / CONFIG}: {SETTINGS.activation} and {TEXT_ACTIVATION} differ, but heedful uses one activation "
            "for both encoders"
        )
    side = config[f"{VISION}.image_size"]
    image, notes = image_settings(folder, (side, side), CLIP)
    image |= {"patch": config[f"{VISION}.patch_size"], "channels": config[f"{VISION}.num_channels"]}
    rows = config["vocab_size"]
    tokenizers, old_id_of = read_tokenizer(folder, rows)
    data = {"modality": "image", "max_length": fields["text_max_positions"]}
    recipe = converted_recipe(
        task or TASK, fields, tokenizers, folder, data=data, image=image, train={"label_smoothing": 0.0}
    )
    theirs, left_out = split_by_name(read_weights(folder), COMPUTED)
    check_weights(theirs, to_theirs(expected_weights(recipe, rows), recipe.image), where)
    scale = theirs.pop(THEIR_SCALE).reshape(1)
    ours = NAMES.ours(theirs)
    patches = ours[PATCHES].permute(0, 2, 3, 1).flatten(1).contiguous()  # (D, C, P, P) -> (D, P P C)
    ours |= {PATCHES: patches, PATCH_BIAS: torch.zeros(len(patches)), CLASS_TOKEN: ours[CLASS_TOKEN][None]}
    ours = reorder_rows(ours | {SCALE: scale}, old_id_of, (EMBEDDING,))
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=notes)


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a dual encoder as a Hugging Face folder with a `CLIPModel`; biases that the encoder lacks become zeros.

    CLIP has no patch bias, so the bias is added to the patch positions, which is equivalent.
    """
    recipe, rows = model.recipe, len(model.tokenizers.source)
    whole, settings = with_biases(recipe), settings_of(model)

    # Each encoder has a separate table in config.json, with the type that transformers expects.
    config: dict[str, Any] = {VISION: {"model_type": "clip_vision_model"}, TEXT: {"model_type": "clip_text_model"}}
    for key, value in settings.items():
        part, _, name = key.rpartition(".")
        if name != "positions":
            (config[part] if part else config)[name] = value
    config[VISION] |= {"image_size": recipe.image.size[0], "patch_size": recipe.image.patch, "num_channels": 3}
    config[TEXT] |= {"vocab_size": rows, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    for part in (VISION, TEXT):
        config[part] |= {"hidden_act": settings[SETTINGS.activation], "projection_dim": settings["projection_dim"]}
    config |= {"architectures": ["CLIPModel"], DTYPE: precision}
    ours = with_zero_biases(model.weights, expected_weights(whole, rows))
    files = {PREPROCESSOR: preprocessor(recipe.image)}
    return write_hugging_face(model, to_theirs(ours, recipe.image), config, folder, files=files, segments=False)


def with_biases(recipe: Recipe) -> Recipe:
    return replace(recipe, model=replace(recipe.model, attention_bias=True, bias=True))


def settings_of(model: Model) -> dict[str, Any]:
    """Return a model's settings for config.json, or raise an InputError if it differs from a CLIP."""
    recipe = model.recipe
    return SETTINGS.config(with_biases(recipe), model.tokenizers.source.config, image_misfits(recipe))


def expected_weights(recipe: Recipe, rows: int) -> Weights:
    """Return the weights of a recipe's dual encoder, with a vocabulary of `rows` tokens, as shapes without values."""
    config = cast("DualEncoderConfig", recipe.model)
    return shapes_of(lambda: DualEncoder(config, PatchEmbedding(recipe.image, config.d_model), rows))


def to_theirs(ours: Mapping[str, torch.Tensor], image: ImageConfig) -> Weights:
    """Convert heedful's weights to CLIP's names and shapes, and add the patch bias to the patch positions."""
    weights = dict(ours)
    bias = weights.pop(PATCH_BIAS)
    positions = weights[POSITIONS][: image.tokens].clone()
    # Position 0 belongs to the class token, which has no patch.
    positions[1:] += bias
    # (D, P P C) -> (D, P, P, C) -> (D, C, P, P)
    patches = weights[PATCHES].unflatten(1, (image.patch, image.patch, image.channels)).permute(0, 3, 1, 2)
    # heedful limits the scale where it is used; transformers does not, so the exported scale is limited.
    scale = weights.pop(SCALE).clamp(max=MAX_LOG_SCALE)
    shaped = {POSITIONS: positions, PATCHES: patches, CLASS_TOKEN: weights[CLASS_TOKEN][0]}
    return NAMES.theirs({**weights, **shaped}) | {THEIR_SCALE: scale[0]}


def flat_config(folder: Path) -> dict[str, Any]:
    """Read config.json, fill in defaults, and flatten the tables of its two encoders into dotted keys."""
    config = read_config(folder)
    flat = {**DEFAULTS, **config}
    for part in (VISION, TEXT):
        table = flat.pop(part)
        if not isinstance(table, dict):
            raise InputError(f"{folder / CONFIG}: {part} is not a JSON object; download the file again")
        flat |= {f"{part}.{key}": value for key, value in {**DEFAULTS[part], **table}.items()}
    try:
        side = flat[f"{VISION}.image_size"] // flat[f"{VISION}.patch_size"]
    except (TypeError, ZeroDivisionError) as error:
        raise InputError(f"{folder / CONFIG}: image_size and patch_size are not valid sizes; fix them") from error
    # One position for each patch, and one for the class token.
    return {**flat, f"{VISION}.positions": side**2 + 1, "vocab_size": flat[f"{TEXT}.vocab_size"]}


def image_misfits(recipe: Recipe) -> list[Misfit]:
    """List the settings of images and pooling that CLIP cannot represent."""
    side = recipe.image.size[0]
    supported = {
        KEYS.image.size: ((side, side),),
        KEYS.image.stem: ("linear",),
        KEYS.image.class_token: (True,),
        KEYS.image.positions: ("none",),
        KEYS.image.channels: (3,),
        KEYS.image.resize: ("crop", "squash"),
        KEYS.model.pooling: (None, "first"),
    }
    return misfits_among(recipe, supported)


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("clip",), reader=read, names=NAMES, keys=SETTINGS.keys)
EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    check=settings_of,
    tasks=SETTINGS.tasks,
    precisions=PRECISIONS,
    architecture=DualEncoderConfig.architecture,
    changes=renumbering_note,
)
