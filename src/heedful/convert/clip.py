"""Read and write CLIP in the format of Hugging Face: `CLIPModel`, with the settings of its tokenizer and images.

D model, C channels, P pixels on the side of a patch, S positions of an image.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from heedful.architectures.dual_encoder.model import MAX_SCALE, DualEncoder
from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.config.modalities import ImageConfig
from heedful.config.schema import Recipe
from heedful.convert.image_settings import CLIP, PREPROCESSOR, picture_settings, preprocessor
from heedful.convert.model import (
    Format,
    Model,
    expected,
    read_tokenizer,
    read_weights,
    recipe_of,
    renumbered,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, Misfit, Settings, read_config
from heedful.convert.vocabulary import reorder
from heedful.convert.weights import Names, Weights, compare, with_zero_biases, without
from heedful.errors import InputError
from heedful.nn.patches import PatchEmbedding
from heedful.tasks.image_text_retrieval import ImageTextRetrieval
from heedful.text.pipeline import BOS, EOS, PAD

TASK = "image_text_retrieval"
LARGEST_LOG_SCALE = math.log(MAX_SCALE)


def blocks(ours: str, theirs: str) -> dict[str, str]:
    """The names of the blocks of one encoder."""
    attention = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj"}
    parts = {
        **{f"self_attention.{name}": f"self_attn.{other}" for name, other in attention.items()},
        "self_residual.norm": "layer_norm1",
        "feed_forward.up": "mlp.fc1",
        "feed_forward.down": "mlp.fc2",
        "feed_residual.norm": "layer_norm2",
    }
    return {f"{ours}.blocks.#.{part}": f"{theirs}.layers.#.{other}" for part, other in parts.items()}


CLASS_TOKEN = "pictures.backbone.embedding.class_token"
PATCHES, PATCH_BIAS = "pictures.backbone.embedding.stem.project.weight", "pictures.backbone.embedding.stem.project.bias"
POSITIONS = "pictures.backbone.stack.positions.table.weight"
EMBEDDING = "texts.backbone.embedding.weight"
SCALE, THEIR_SCALE = "log_scale", "logit_scale"  # single numbers, here in a vector

NAMES = Names(
    {
        CLASS_TOKEN: "vision_model.embeddings.class_embedding",
        "pictures.backbone.embedding.stem.project": "vision_model.embeddings.patch_embedding",
        "pictures.backbone.stack.positions.table": "vision_model.embeddings.position_embedding",
        "pictures.backbone.stack.embedding_norm": "vision_model.pre_layrnorm",  # the format spells it so
        **blocks("pictures.backbone.stack", "vision_model.encoder"),
        "pictures.backbone.stack.norm": "vision_model.post_layernorm",
        "pictures.project": "visual_projection",
        "texts.backbone.embedding": "text_model.embeddings.token_embedding",
        "texts.backbone.stack.positions.table": "text_model.embeddings.position_embedding",
        **blocks("texts.backbone.stack", "text_model.encoder"),
        "texts.backbone.stack.norm": "text_model.final_layer_norm",
        "texts.project": "text_projection",
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
        f"{VISION}.positions": "max_positions",  # follows from the size of an image and of its patches
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
DEFAULTS = {  # of settings that a config.json may leave out
    "projection_dim": 512,
    VISION: {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "num_channels": 3,
        "image_size": 224,
        "patch_size": 32,
        "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-5,
        "attention_dropout": 0.0,
    },
    TEXT: {
        "vocab_size": 49_408,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_attention_heads": 8,
        "num_hidden_layers": 12,
        "max_position_embeddings": 77,
        "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-5,
        "attention_dropout": 0.0,
    },
}


def read(folder: Path, task: str | None = None) -> Model:
    """Read a CLIP model folder of Hugging Face and convert the model to heedful.

    CLIP has no bias of patches: a bias of zeros is added. It has no <pad> and no <unk> of its own, which get vectors of
    zeros, and which no text has.
    """
    config, where = flat_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    if config[TEXT_ACTIVATION] != config[SETTINGS.activation]:
        raise InputError(f"{folder / CONFIG}: {SETTINGS.activation} and {TEXT_ACTIVATION} differ, and heedful has one")
    side = config[f"{VISION}.image_size"]
    image, notes = picture_settings(folder, (side, side), CLIP)
    image |= {"patch": config[f"{VISION}.patch_size"], "channels": config[f"{VISION}.num_channels"]}
    rows = config["vocab_size"]
    tokenizers, old_id_of = read_tokenizer(folder, rows)
    data = {"modality": "image", "max_length": fields["text_max_positions"]}
    recipe = recipe_of(task or TASK, fields, tokenizers, folder, data=data, image=image, train={"label_smoothing": 0.0})
    theirs, left_out = without(read_weights(folder), COMPUTED)
    compare(theirs, to_theirs(expected_weights(recipe, rows), recipe.image), where)
    ours = reorder(to_ours(theirs), old_id_of, (EMBEDDING,))
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=notes)


def write(model: Model, folder: Path) -> int:
    """Write a dual encoder of heedful as a Hugging Face folder with a `CLIPModel`.

    Biases that the model lacks become zeros. The bias of patches, for which CLIP has no place, is added to the
    positions of the patches, which does the same. Returns the number of values in the weights.
    """
    recipe, rows = model.recipe, len(model.tokenizers.source)
    own = replace(cast("DualEncoderConfig", recipe.model), attention_bias=True, bias=True)
    whole = replace(recipe, model=own)
    settings = SETTINGS.config(whole, model.tokenizers.source.config, image_misfits(recipe))

    # The keys of the two encoders are in tables of their own, with the types that transformers gives them.
    config: dict[str, Any] = {VISION: {"model_type": "clip_vision_model"}, TEXT: {"model_type": "clip_text_model"}}
    for key, value in settings.items():
        part, _, name = key.rpartition(".")
        if name != "positions":
            (config[part] if part else config)[name] = value
    config[VISION] |= {"image_size": recipe.image.size[0], "patch_size": recipe.image.patch, "num_channels": 3}
    config[TEXT] |= {"vocab_size": rows, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    for part in (VISION, TEXT):
        config[part] |= {"hidden_act": settings[SETTINGS.activation], "projection_dim": own.projection}
    config |= {"architectures": ["CLIPModel"]}
    ours = with_zero_biases(model.weights, expected_weights(whole, rows))
    files = {PREPROCESSOR: preprocessor(recipe.image)}
    return write_hugging_face(model, to_theirs(ours, recipe.image), config, folder, files=files, segments=False)


def expected_weights(recipe: Recipe, rows: int) -> Weights:
    """Shapes of the weights of a recipe's dual encoder with a vocabulary of so many rows, without values."""
    config = cast("DualEncoderConfig", recipe.model)
    return expected(lambda: DualEncoder(config, PatchEmbedding(recipe.image, config.d_model), rows))


def to_theirs(ours: Mapping[str, torch.Tensor], image: ImageConfig) -> Weights:
    """Give heedful's weights the names and the shapes of CLIP's, and add the bias of patches to their positions."""
    weights = dict(ours)
    bias = weights.pop(PATCH_BIAS)
    positions = weights[POSITIONS][: image.tokens].clone()
    positions[1:] += bias
    patches = weights[PATCHES].unflatten(1, (image.patch, image.patch, image.channels)).permute(0, 3, 1, 2)
    scale = weights.pop(SCALE).clamp(max=LARGEST_LOG_SCALE)
    shaped = {POSITIONS: positions, PATCHES: patches, CLASS_TOKEN: weights[CLASS_TOKEN][0]}
    return NAMES.theirs({**weights, **shaped}) | {THEIR_SCALE: scale[0]}


def to_ours(theirs: Mapping[str, torch.Tensor]) -> Weights:
    """Give CLIP's weights the names and the shapes of heedful's, with a bias of patches that is zero."""
    weights = NAMES.ours({name: value for name, value in theirs.items() if name != THEIR_SCALE})
    patches = weights[PATCHES].permute(0, 2, 3, 1).flatten(1).contiguous()
    shaped = {PATCHES: patches, CLASS_TOKEN: weights[CLASS_TOKEN][None], SCALE: theirs[THEIR_SCALE].reshape(1)}
    return {**weights, **shaped, PATCH_BIAS: torch.zeros(len(patches))}


def flat_config(folder: Path) -> dict[str, Any]:
    """Read config.json with defaults filled in, and with dotted names for the keys of its two encoders."""
    config = read_config(folder)
    flat = {**DEFAULTS, **config}
    for part in (VISION, TEXT):
        table = flat.pop(part)
        if not isinstance(table, dict):
            raise InputError(f"{folder / CONFIG}: {part} has no keys; download it again")
        flat |= {f"{part}.{key}": value for key, value in {**DEFAULTS[part], **table}.items()}
    try:
        side = flat[f"{VISION}.image_size"] // flat[f"{VISION}.patch_size"]
    except (TypeError, ZeroDivisionError) as error:
        raise InputError(f"{folder / CONFIG}: image_size and patch_size are no sizes of pictures; mend them") from error
    return {**flat, f"{VISION}.positions": side**2 + 1, "vocab_size": flat[f"{TEXT}.vocab_size"]}


def image_misfits(recipe: Recipe) -> list[Misfit]:
    """List the settings by which images are not read as CLIP reads them."""
    image, side = recipe.image, recipe.image.size[0]
    fitting = {
        "image.size": (list(image.size), ([side, side],)),
        "image.stem": (image.stem, ("linear",)),
        "image.class_token": (image.class_token, (True,)),
        "image.positions": (image.positions, ("none",)),
        "image.channels": (image.channels, (3,)),
        "image.resize": (image.resize, ("crop", "squash")),
        "model.pooling": (recipe.model.pooling or "first", ("first",)),
    }
    return [Misfit(key=key, value=own, fitting=those) for key, (own, those) in fitting.items() if own not in those]


FORMAT = Format(
    reader=read, tasks=SETTINGS.tasks, writer=write, architecture=DualEncoderConfig.architecture, changes=renumbered
)
