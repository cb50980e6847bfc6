"""Conversion between Hugging Face's config.json and `ModelConfig`, for each type of model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig, TransformerSettings
from heedful.errors import InputError
from heedful.storage.disk import is_lfs_pointer, read_small
from heedful.tasks import TASKS
from heedful.tasks.task import Task
from heedful.text.hugging_face import has_counterpart
from heedful.text.tokenizer import MAX_FILE
from heedful.wording import either

CONFIG = "config.json"

# Hugging Face's name -> heedful's. If Hugging Face has two names for a function, the first is written to config.json.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
}

# Keys of config.json -> fields of `ModelConfig`, in BERT and ViT.
ENCODER_KEYS = {
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "num_attention_heads": "heads",
    "num_hidden_layers": "encoder_layers",
    "layer_norm_eps": "norm_eps",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
# The same in Marian and Whisper.
ENCODER_DECODER_KEYS = {
    "d_model": "d_model",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
    "encoder_attention_heads": "heads",
    "decoder_attention_heads": "heads",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "scale_embedding": "scale_embeddings",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
}

# Fields that need no counterpart in config.json: they do not change the outputs of a trained model or, as the pooling,
# are checked or written separately.
FREE_FIELDS = (
    "init",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "source_vectors",
    "target_vectors",
    "freeze_vectors",
    "pooling",
    "temperature",
)


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A key of a recipe whose value another model format does not support.

    Attributes:
        key: The key with its table, such as "model.norm".
        value: The value in the recipe.
        fitting: The values that the format supports; None stands for a key that is left out.
    """

    key: str
    value: Any
    fitting: tuple[Any, ...]

    def __str__(self) -> str:
        values = [json.dumps(value) for value in self.fitting if value is not None]
        choice = f"= {either(values)}" if values else "left out"
        return f"{self.key} {choice}, not {json.dumps(self.value)}"


def misfits_among(recipe: Recipe, supported: Mapping[Any, tuple[Any, ...]]) -> list[Misfit]:
    """List the keys of a recipe whose values another format does not support, given the values that it supports."""
    settings = ((str(key), attrgetter(str(key))(recipe), values) for key, values in supported.items())
    return [Misfit(key=key, value=value, fitting=values) for key, value, values in settings if value not in values]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Rules for converting the config.json of one type of Hugging Face model to `ModelConfig` and back.

    Attributes:
        model_type: The value of model_type in config.json, such as "bert".
        classes: Prefix of the class names in transformers, such as "Bert".
        tasks: Tasks that heedful's models of the type can have.
        keys: Key in config.json -> field of `ModelConfig`; several keys may map to one field.
        activation: Key of the activation in config.json.
        fixed: Fields of `ModelConfig` that have the same value, other than the default, in all models of the type.
        needed: Keys of config.json, each with the only value that heedful supports; they may also be absent.
        also: Further keys that config.json must have.
        options: Class of the [model] settings of such models in heedful.
        activations: Activation in config.json -> activation in heedful.
    """

    model_type: str
    classes: str
    tasks: tuple[type[Task], ...]
    keys: Mapping[str, str]
    activation: str
    fixed: Mapping[str, Any]
    needed: Mapping[str, Any]
    also: tuple[str, ...] = ("vocab_size",)
    options: type[TransformerSettings] = ModelConfig
    activations: Mapping[str, str] = field(default_factory=lambda: ACTIVATIONS)

    def fields(self, config: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Convert the contents of a Hugging Face config.json to fields of `ModelConfig`."""
        kind, names = config.get("model_type", self.model_type), config.get("architectures") or []
        has_classes = isinstance(names, list) and all(str(name).startswith(self.classes) for name in names)
        if kind != self.model_type or not has_classes:
            raise InputError(
                f"{where}: model_type is {json.dumps(kind)} and architectures are {json.dumps(names)}; read as a "
                f'"{self.model_type}" with an architecture such as {self.classes}Model, the model would give '
                "different results"
            )
        missing = sorted({key for key in (*self.keys, self.activation, *self.also) if key not in config})
        problems = [f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
        problems += [
            f"{key} is {json.dumps(config[key])}, but heedful supports only {json.dumps(value)}"
            for key, value in self.needed.items()
            if config.get(key, value) != value
        ]
        if not problems and str(config[self.activation]) not in self.activations:
            choices = ", ".join(self.activations)
            problems = [f"{self.activation} is {config[self.activation]!r}, but heedful has only {choices}"]
        fields: dict[str, Any] = {}
        # Several keys may map to one field, such as the heads of encoder and decoder; then they have to agree.
        for key in self.keys.keys() & config.keys():
            if fields.setdefault(self.keys[key], config[key]) != config[key]:
                alike = [other for other in self.keys if self.keys[other] == self.keys[key]]
                problems.append(f"{' and '.join(alike)} differ")
        if problems:
            raise InputError(f"{where}: this model cannot be converted: {'; '.join(sorted(set(problems)))}")
        return {**self.fixed, **fields, "activation": self.activations[config[self.activation]]}

    def config(
        self, recipe: Recipe, tokenizer: TokenizerConfig | None, further: Sequence[Misfit] = ()
    ) -> dict[str, Any]:
        """Convert a heedful recipe to the contents of a Hugging Face config.json."""
        # Fields without a key in config.json must have the value that all models of the type have.
        theirs_of = {ours: theirs for theirs, ours in reversed([*self.activations.items()])}
        own = asdict(plain(recipe.model))
        theirs = asdict(self.options(**self.fixed, **{field: own[field] for field in self.keys.values()}))
        fitting: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in theirs.items()}
        if "activation" not in self.fixed:
            fitting["activation"] = tuple(theirs_of)
        misfits = [
            Misfit(key=f"model.{name}", value=own[name], fitting=values)
            for name, values in fitting.items()
            if name not in FREE_FIELDS and own[name] not in values
        ]
        if FAMILIES[recipe.model.family].pairs and not recipe.tokenizer.joint:
            misfits.append(Misfit(key=str(KEYS.tokenizer.joint), value=False, fitting=(True,)))
        if tokenizer is not None and not has_counterpart(tokenizer):
            misfits.append(Misfit(key=str(KEYS.tokenizer.byte_fallback), value=True, fitting=(False,)))
        if misfits or further:
            changes = "\n  ".join(map(str, [*misfits, *further]))
            raise InputError(
                f"cannot be converted to a Hugging Face {self.model_type} model: {self.classes} requires different "
                f"settings; to export to {self.classes}, train a model with:\n  {changes}"
            )
        values = {key: getattr(recipe.model, field) for key, field in self.keys.items()}
        values[self.activation] = theirs_of[recipe.model.activation]
        return {"model_type": self.model_type, **self.needed, **values}


def names_of(tasks: tuple[type[Task], ...]) -> str:
    """Return the names of all tasks that are subclasses of `tasks`, quoted and joined with "or" for a message."""
    return either(f'"{name}"' for name, task in TASKS.items() if issubclass(task, tasks))


def plain(model: ModelConfig) -> ModelConfig:
    """Replace redundant values of a `ModelConfig` with equivalent defaults, so that configurations can be compared."""
    d_k = model.d_k or model.d_model // model.heads
    family = FAMILIES[model.family]
    # The number of layers in a stack that the family lacks has no effect, whatever the recipe says.
    unused = {key: getattr(ModelConfig, key) for key in FAMILIES[ModelConfig.family].layers if key not in family.layers}
    return replace(
        model,
        kv_heads=None if model.kv_heads == model.heads else model.kv_heads,
        d_k=None if d_k * model.heads == model.d_model else d_k,
        d_v=None if model.d_v == d_k else model.d_v,
        tie="all" if not family.pairs and model.tie == "output" else model.tie,
        rope_theta=model.rope_theta if model.positions == "rotary" else ModelConfig.rope_theta,
        **unused,
    )


def reject_lfs_pointers(folder: Path) -> None:
    """Raise an InputError if files of a folder are Git LFS pointers, which no reader understands."""
    if pointers := [path for path in sorted(folder.iterdir()) if path.is_file() and is_lfs_pointer(path)]:
        verb = "is a Git LFS pointer, not the file itself"
        raise InputError(f"{pointers[0]}: {verb}; run `git lfs pull` in {folder}, or download the model again")


def read_config(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    """Read config.json, or another JSON file that contains an object, from a model folder."""
    config = read_json(folder / name)
    if not isinstance(config, dict):
        raise InputError(f"{folder / name}: is not a JSON object; download it again")
    return config


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_small(path, MAX_FILE))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check that {path.parent} is a model folder"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); download it again") from error
