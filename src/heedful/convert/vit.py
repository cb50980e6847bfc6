"""Read and write Vision Transformers in the Hugging Face format: `ViTModel` and `ViTForImageClassification`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.defaults import TASK_DEFAULTS, merge
from heedful.config.keys import KEYS
from heedful.config.load import recipe_from_dict
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig, TrainConfig
from heedful.convert.exporter import Exporter
from heedful.convert.image_settings import PREPROCESSOR, VIT, image_settings, preprocessor
from heedful.convert.model import DTYPE, PRECISIONS, Format, Model, read_weights, shapes_of, write_files
from heedful.convert.settings import CONFIG, ENCODER_KEYS, Settings, misfits_among, read_config
from heedful.convert.weights import Names, check_weights, split_by_name, with_prefix, with_zero_biases
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
THEIR_POSITIONS = "vit.embeddings.position_embeddings"
POSITIONS = "backbone.stack.positions.table.weight"
OTHER_HEADS = r"decoder\..*|vit\.embeddings\.mask_token"  # for masked patches
NO_CLASSES = (
    "the model has no classification head: a new head of zeros gives all classes the same probability; train a "
    "model that starts from the converted one, with train.start",
)

SETTINGS = Settings(
    model_type="vit",
    classes="ViT",
    tasks=(ImageClassification,),
    keys=ENCODER_KEYS,
    activation="hidden_act",
    fixed={"family": "encoder", "positions": "learned", "norm": "pre", "init": "normal", "pooler": "none"},
    needed={"pooler_act": "tanh"},
    also=("image_size", "patch_size", "num_channels"),
)
TEXT_ONLY = ("tie", "output_bias", "scale_embeddings", "source_eos", "max_positions")  # without effect on images


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face Vision Transformer as an image classifier.

    A model without classes gets a head of zeros, and keeps its pooler if it has one: `model.pooler = "dense"`.
    """
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "vit.", rf"(?:vit|classifier)\..*|{OTHER_HEADS}")
    theirs, left_out = split_by_name(weights, OTHER_HEADS)
    if HEAD not in theirs and POOLER in theirs:
        fields["pooler"] = "dense"
    image, notes = image_settings(folder, _sides(config["image_size"], "image_size", where), VIT)
    patch_height, patch_width = _sides(config["patch_size"], "patch_size", where)
    if patch_height != patch_width:
        raise InputError(f"{where}: patches are {patch_height} x {patch_width} pixels, but heedful's are square")
    image |= {"channels": config["num_channels"], "patch": patch_height}
    positions = ImageConfig(size=tuple(image["size"]), patch=image["patch"]).tokens
    values = {
        "name": folder.resolve().name,
        "task": task or TASK,
        "data": {"labels": list(_labels(config, where))},
        "image": dict(image),
        "model": {**fields, "max_positions": positions},
        "train": {"batch_tokens": max(positions, TrainConfig.batch_tokens)},
    }
    recipe = recipe_from_dict(merge(TASK_DEFAULTS[TASK], values), str(folder))
    theirs = {name: _matrix(name, value) for name, value in theirs.items()}
    ours = shapes_of(lambda: ImageClassification.build(recipe, NoTokenizers()))
    if HEAD not in theirs:
        notes = (*notes, *NO_CLASSES)
        head = {name: value for name, value in ours.items() if name.startswith("output.")}
        theirs |= NAMES.theirs({name: torch.zeros(value.shape) for name, value in head.items()})
    names = NAMES.theirs(ours)
    # heedful has one setting for all attention biases, so the biases that this ViT lacks become zeros.
    if config.get("qkv_bias") is False:
        theirs = with_zero_biases(theirs, {name: names[name] for name in names if ".attention.attention." in name})
    check_weights(theirs, names, where)
    return Model(
        recipe=recipe, tokenizers=NoTokenizers(), weights=NAMES.ours(theirs), left_out=left_out, notes=tuple(notes)
    )


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write an image classifier as a Hugging Face folder with a `ViTForImageClassification`.

    That class has no pooler: a model with `model.pooler = "dense"` becomes a `ViTModel` if its head was never trained,
    and is rejected otherwise. Biases that the model lacks become zeros.
    """
    recipe, config, image = model.recipe, _config(model), model.recipe.image
    whole = replace(recipe, model=replace(recipe.model, attention_bias=True, bias=True))
    ours = with_zero_biases(model.weights, shapes_of(lambda: ImageClassification.build(whole, NoTokenizers())))
    # heedful's table may have more positions than an image has tokens; a ViT has exactly as many.
    ours[POSITIONS] = ours[POSITIONS][: image.tokens]
    theirs = NAMES.theirs(ours)
    if recipe.model.pooler == "dense":
        config["architectures"] = ["ViTModel"]
        theirs, _ = split_by_name(theirs, r"classifier\..*")
        theirs = {name.removeprefix("vit."): value for name, value in theirs.items()}
    else:
        config["architectures"] = ["ViTForImageClassification"]
    config[DTYPE] = precision
    for name, value in theirs.items():
        whole_name = f"vit.{name.removeprefix('vit.')}"
        if whole_name == PATCHES:  # the patch convolution that `_matrix` flattened
            # (D, P P C) -> (D, P, P, C) -> (D, C, P, P)
            parts = value.unflatten(1, (image.patch, image.patch, image.channels))
            theirs[name] = parts.permute(0, 3, 1, 2).contiguous()
        elif whole_name in (TOKEN, THEIR_POSITIONS):
            # transformers stores both with a batch dimension: (S, D) -> (1, S, D).
            theirs[name] = value[None]
    return write_files(theirs, {CONFIG: config, PREPROCESSOR: preprocessor(image)}, folder)


def _config(model: Model) -> dict[str, Any]:
    recipe, image, labels = model.recipe, model.recipe.image, model.recipe.data.labels
    square = image.size[0] == image.size[1]
    supported = {  # settings of [image] and of pooling that every ViT has
        KEYS.image.stem: ("linear",),
        KEYS.image.class_token: (True,),
        KEYS.image.positions: ("none",),
        KEYS.image.resize: ("squash", "crop") if square else ("squash",),
        KEYS.model.pooling: (None, "first"),
    }
    plain = replace(recipe.model, attention_bias=True, bias=True)
    plain = replace(plain, **{key: getattr(ModelConfig, key) for key in TEXT_ONLY})
    # `read` adds a head of zeros to a model without classes; such a head need not be kept.
    is_trained = any(bool(value.any()) for name, value in model.weights.items() if name.startswith("output."))
    if recipe.model.pooler == "dense" and not is_trained:
        plain = replace(plain, pooler="none")
    settings = SETTINGS.config(replace(recipe, model=plain), None, misfits_among(recipe, supported))
    return {
        **settings,
        "image_size": image.size[0] if square else list(image.size),
        "patch_size": image.patch,
        "num_channels": image.channels,
        "qkv_bias": True,
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _labels(config: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the class names in order. If an earlier class has the same name, the number of the class is appended."""
    # transformers omits the default, which is two unnamed classes.
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = [str(labels[str(number)]) for number in range(len(labels))]
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}: id2label in {CONFIG} does not number the classes from 0; fix it") from error
    first = {name: names.index(name) for name in Counter(names)}
    return tuple(name if first[name] == number else f"{name} ({number})" for number, name in enumerate(names))


def _sides(size: object, key: str, where: str) -> tuple[int, int]:
    match size:
        case int():
            return size, size
        case [int(height), int(width)]:
            return height, width
    raise InputError(f"{where}: {key} in {CONFIG} is {size!r}, but should be one number, or height and width")


def _matrix(name: str, value: Tensor) -> Tensor:
    """Flatten the patch weights to a matrix, channels last; remove the batch dimension of positions and class token."""
    if name == PATCHES and value.dim() == 4:
        # (D, C, P, P) -> (D, P, P, C) -> (D, P P C)
        return value.permute(0, 2, 3, 1).flatten(1)
    return value[0] if value.dim() == 3 and len(value) == 1 else value


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("vit",), reader=read, keys=SETTINGS.keys)
EXPORTER = Exporter(title="Hugging Face", writer=write, check=_config, tasks=SETTINGS.tasks, precisions=PRECISIONS)
