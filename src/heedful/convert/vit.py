"""Read and write Vision Transformers in the format of Hugging Face: `ViTModel` and `ViTForImageClassification`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.load import OF_TASKS, merge, recipe_from_dict
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig, Recipe, TrainConfig
from heedful.convert.image_settings import PREPROCESSOR, VIT, picture_settings, preprocessor
from heedful.convert.model import Format, Model, expected, read_weights, write_files
from heedful.convert.settings import CONFIG, Misfit, Settings, read_config
from heedful.convert.weights import Names, compare, with_prefix, with_zero_biases, without
from heedful.errors import InputError
from heedful.tasks.media_classification import ImageClassification
from heedful.text.tokenizer_pair import NoTokenizers

TASK = "image_classification"
NAMES = Names(
    {
        "backbone.embedding.stem.project": "vit.embeddings.patch_embeddings.projection",
        "backbone.embedding.class_token": "vit.embeddings.cls_token",
        "backbone.stack.positions.table.weight": "vit.embeddings.position_embeddings",
        "backbone.stack.blocks.#.self_attention.q": "vit.encoder.layer.#.attention.attention.query",
        "backbone.stack.blocks.#.self_attention.k": "vit.encoder.layer.#.attention.attention.key",
        "backbone.stack.blocks.#.self_attention.v": "vit.encoder.layer.#.attention.attention.value",
        "backbone.stack.blocks.#.self_attention.out": "vit.encoder.layer.#.attention.output.dense",
        "backbone.stack.blocks.#.self_residual.norm": "vit.encoder.layer.#.layernorm_before",
        "backbone.stack.blocks.#.feed_forward.up": "vit.encoder.layer.#.intermediate.dense",
        "backbone.stack.blocks.#.feed_forward.down": "vit.encoder.layer.#.output.dense",
        "backbone.stack.blocks.#.feed_residual.norm": "vit.encoder.layer.#.layernorm_after",
        "backbone.stack.norm": "vit.layernorm",
        "pooler.dense": "vit.pooler.dense",
        "output": "classifier",
    }
)
HEAD, POOLER = "classifier.weight", "vit.pooler.dense.weight"
PATCHES, TOKEN = "vit.embeddings.patch_embeddings.projection.weight", "vit.embeddings.cls_token"
POSITIONS = "backbone.stack.positions.table.weight"
OTHER_HEADS = r"decoder\..*|vit\.embeddings\.mask_token"  # of masked patches
NO_CLASSES = (
    "the model has no head for classes: a new one, of zeros, gives all of them the same probability; train a model "
    "that begins with the converted one, with train.start",
)

SETTINGS = Settings(
    model_type="vit",
    classes="ViT",
    tasks=(ImageClassification,),
    keys={
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_attention_heads": "heads",
        "num_hidden_layers": "encoder_layers",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    activation="hidden_act",
    fixed={"family": "encoder", "positions": "learned", "norm": "pre", "init": "normal", "pooler": "none"},
    needed={"pooler_act": "tanh"},
    also=("image_size", "patch_size", "num_channels"),
)
TEXT_ONLY = ("tie", "output_bias", "scale_embeddings", "source_eos", "max_positions")  # keys that no image depends on


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Vision Transformer of Hugging Face as a classifier of images.

    The pooler of a model without classes stays, as `model.pooler = "dense"`.
    """
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "vit.", rf"(?:vit|classifier)\..*|{OTHER_HEADS}")
    theirs, left_out = without(weights, OTHER_HEADS)
    if HEAD not in theirs and POOLER in theirs:
        fields["pooler"] = "dense"
    image, notes = picture_settings(folder, _sides(config["image_size"], "image_size", where), VIT)
    patch_height, patch_width = _sides(config["patch_size"], "patch_size", where)
    if patch_height != patch_width:
        raise InputError(f"{where}: patches are {patch_height} x {patch_width} pixels, and heedful's are square")
    image |= {"channels": config["num_channels"], "patch": patch_height}
    recipe = _recipe(task or TASK, fields, image, _labels(config, where), folder)
    theirs = {name: _flat(name, value) for name, value in theirs.items()}
    ours = expected(lambda: ImageClassification.build(recipe, NoTokenizers()))
    if HEAD not in theirs:
        notes = (*notes, *NO_CLASSES)
        head = {name: value for name, value in ours.items() if name.startswith("output.")}
        theirs |= NAMES.theirs({name: torch.zeros(value.shape) for name, value in head.items()})
    names = NAMES.theirs(ours)
    if config.get("qkv_bias") is False:
        theirs = with_zero_biases(theirs, {name: names[name] for name in names if ".attention.attention." in name})
    compare(theirs, names, where)
    return Model(
        recipe=recipe, tokenizers=NoTokenizers(), weights=NAMES.ours(theirs), left_out=left_out, notes=tuple(notes)
    )


def write(model: Model, folder: Path) -> int:
    """Write a classifier of images as a folder of Hugging Face, and return the number of values in the weights.

    It becomes a `ViTForImageClassification`. With `model.pooler = "dense"`, for which that class has no place, it
    becomes a `ViTModel`, if its head was never trained. Biases that the model lacks become zeros.
    """
    recipe = model.recipe
    config = _config(model)
    image, own = recipe.image, replace(recipe.model, attention_bias=True, bias=True)
    whole = replace(recipe, model=own)
    ours = with_zero_biases(model.weights, expected(lambda: ImageClassification.build(whole, NoTokenizers())))
    ours[POSITIONS] = ours[POSITIONS][: image.tokens]
    theirs = NAMES.theirs(ours)
    if recipe.model.pooler == "dense":
        config["architectures"] = ["ViTModel"]
        theirs = {name.removeprefix("vit."): value for name, value in without(theirs, r"classifier\..*")[0].items()}
    else:
        config["architectures"] = ["ViTForImageClassification"]
    shaped = {name: _unflat(f"vit.{name.removeprefix('vit.')}", value, image) for name, value in theirs.items()}
    return write_files(shaped, {CONFIG: config, PREPROCESSOR: preprocessor(image)}, folder)


def _config(model: Model) -> dict[str, Any]:
    """The contents of config.json."""
    recipe, image, labels = model.recipe, model.recipe.image, model.recipe.data.labels
    plain = replace(recipe.model, attention_bias=True, bias=True)
    plain = replace(plain, **{key: getattr(ModelConfig, key) for key in TEXT_ONLY})
    trained = any(bool(value.any()) for name, value in model.weights.items() if name.startswith("output."))
    if recipe.model.pooler == "dense" and not trained:
        plain = replace(plain, pooler="none")
    settings = SETTINGS.config(replace(recipe, model=plain), None, _misfits(recipe))
    return {
        **settings,
        "image_size": image.size[0] if image.size[0] == image.size[1] else list(image.size),
        "patch_size": image.patch,
        "num_channels": image.channels,
        "qkv_bias": True,
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _misfits(recipe: Recipe) -> list[Misfit]:
    """The keys of [image], and that of the pooling, with values that the format has no place for."""
    image, square = recipe.image, recipe.image.size[0] == recipe.image.size[1]
    settings = [
        Misfit(key="image.stem", value=image.stem, fitting=("linear",)),
        Misfit(key="image.class_token", value=image.class_token, fitting=(True,)),
        Misfit(key="image.positions", value=image.positions, fitting=("none",)),
        Misfit(key="image.resize", value=image.resize, fitting=("squash", "crop") if square else ("squash",)),
        Misfit(key="model.pooling", value=recipe.model.pooling, fitting=(None, "first")),
    ]
    return [misfit for misfit in settings if misfit.value not in misfit.fitting]


def _recipe(
    task: str, fields: Mapping[str, Any], image: Mapping[str, Any], labels: tuple[str, ...], folder: Path
) -> Recipe:
    """Build the recipe of a converted model."""
    whole = ImageConfig(size=tuple(image["size"]), patch=image["patch"])
    values = {
        "name": folder.resolve().name,
        "task": task,
        "data": {"labels": list(labels)},
        "image": dict(image),
        "model": {**fields, "max_positions": whole.tokens},
        "train": {"batch_tokens": max(whole.tokens, TrainConfig.batch_tokens)},
    }
    return recipe_from_dict(merge(OF_TASKS[TASK], values), str(folder))


def _labels(config: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The classes in order; of several of one name, each but the first gets its number."""
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = [str(labels[str(number)]) for number in range(len(labels))]
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}: id2label in {CONFIG} does not number the classes from 0; mend it") from error
    first = {name: names.index(name) for name in Counter(names)}
    return tuple(name if first[name] == number else f"{name} ({number})" for number, name in enumerate(names))


def _sides(size: object, key: str, where: str) -> tuple[int, int]:
    """Height and width, which are one number if they are equal."""
    match size:
        case int():
            return size, size
        case [int(height), int(width)]:
            return height, width
    raise InputError(f"{where}: {key} in {CONFIG} is {size!r}, and should be one number or height and width")


def _flat(name: str, value: Tensor) -> Tensor:
    """Take the weights of patches and positions as matrices, whose patches hold their channels last."""
    if name == PATCHES and value.dim() == 4:
        return value.permute(0, 2, 3, 1).flatten(1)
    return value[0] if value.dim() == 3 and len(value) == 1 else value


def _unflat(name: str, value: Tensor, image: ImageConfig) -> Tensor:
    """Undo `_flat`: a convolution over patches, and one more dimension for the class token and the positions."""
    if name == PATCHES:
        return value.unflatten(1, (image.patch, image.patch, image.channels)).permute(0, 3, 1, 2).contiguous()
    return value[None] if name in (TOKEN, "vit.embeddings.position_embeddings") else value


FORMAT = Format(reader=read, tasks=SETTINGS.tasks, writer=write)
