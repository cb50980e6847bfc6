"""Convert between config.json of Hugging Face and `ModelConfig`, for each type of model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig, TransformerSettings
from heedful.errors import InputError
from heedful.storage.disk import read_small
from heedful.tasks import TASKS, find_task
from heedful.tasks.task import Task
from heedful.text.hugging_face import has_counterpart
from heedful.text.tokenizer import LARGEST

CONFIG = "config.json"

# Hugging Face's name -> heedful's. Of two names for one function, the first is written to config.json.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
}
WRITTEN = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}

# Fields that do not change what a trained model computes.
FREE = (
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
        choice = "left out" if self.fitting == (None,) else f"= {' or '.join(map(json.dumps, self.fitting))}"
        return f"{self.key} {choice}, not {json.dumps(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Rules to convert the config.json of one type of Hugging Face models to `ModelConfig` and back.

    Attributes:
        model_type: The value of model_type in config.json, such as "bert".
        classes: Prefix of the class names in transformers, such as "Bert".
        tasks: Tasks that heedful's models of the type can have.
        keys: Key in config.json -> field of `ModelConfig`; several keys may map to one field.
        activation: Key of the activation in config.json.
        fixed: Fields of `ModelConfig` that have the same value in all models of the type, if not the default.
        needed: Keys in config.json that must have this value, or be absent, for heedful to read the model.
        also: Further keys that config.json must have.
        options: The class of the options of heedful's models of the type.
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

    def fields(self, config: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Convert the contents of a Hugging Face config.json to fields of `ModelConfig`."""
        kind, names = config.get("model_type", self.model_type), config.get("architectures") or []
        are_of_type = isinstance(names, list) and all(str(name).startswith(self.classes) for name in names)
        if kind != self.model_type or not are_of_type:
            raise InputError(
                f"{where}: model_type is {json.dumps(kind)} and architectures are {json.dumps(names)}: that is no "
                f'"{self.model_type}" with an architecture such as {self.classes}Model, and read as one it would '
                "compute something else"
            )
        problems = [f"has no {key}" for key in (*self.keys, self.activation, *self.also) if key not in config]
        problems += [
            f"{key} is {json.dumps(config[key])}, and heedful reads {json.dumps(value)} only"
            for key, value in self.needed.items()
            if config.get(key, value) != value
        ]
        if not problems and str(config[self.activation]) not in ACTIVATIONS:
            problems = [f"{self.activation} is {config[self.activation]!r}, and heedful has {', '.join(ACTIVATIONS)}"]
        fields: dict[str, Any] = {}
        for key in self.keys.keys() & config.keys():
            if fields.setdefault(self.keys[key], config[key]) != config[key]:
                alike = [other for other in self.keys if self.keys[other] == self.keys[key]]
                problems.append(f"{' and '.join(alike)} differ")
        if problems:
            raise InputError(f"{where}: this model cannot be converted: {'; '.join(sorted(set(problems)))}")
        return {**self.fixed, **fields, "activation": ACTIVATIONS[config[self.activation]]}

    def config(
        self, recipe: Recipe, tokenizer: TokenizerConfig | None, further: Sequence[Misfit] = ()
    ) -> dict[str, Any]:
        """Convert a recipe of heedful to the contents of a Hugging Face config.json."""
        refused = f'the model "{recipe.name}" cannot become a {self.model_type} model of Hugging Face'
        if not issubclass(find_task(recipe.task), self.tasks):
            raise InputError(
                f'{refused}: it is for the task "{recipe.task}", and such a model is for {names_of(self.tasks)}'
            )
        if misfits := [*self._misfits(recipe, tokenizer), *further]:
            listed = "\n  ".join(map(str, misfits))
            raise InputError(
                f"{refused}, and what it has learned cannot be changed afterwards. A model that is to be converted has "
                f"to be trained with\n  {listed}"
            )
        values = {key: getattr(recipe.model, field) for key, field in self.keys.items()}
        values[self.activation] = WRITTEN[recipe.model.activation]
        return {"model_type": self.model_type, **self.needed, **values}

    def _misfits(self, recipe: Recipe, tokenizer: TokenizerConfig | None) -> list[Misfit]:
        # What config.json has no key for must be as it is in all models of the type.
        own = asdict(plain(recipe.model))
        theirs = asdict(self.options(**self.fixed, **{field: own[field] for field in self.keys.values()}))
        fitting: dict[str, tuple[Any, ...]] = {field: (value,) for field, value in theirs.items() if field not in FREE}
        if "activation" not in self.fixed:
            fitting["activation"] = tuple(WRITTEN)
        misfits = [
            Misfit(key=f"model.{field}", value=own[field], fitting=values)
            for field, values in fitting.items()
            if own[field] not in values
        ]
        if FAMILIES[recipe.model.family].pairs and not recipe.tokenizer.joint:
            misfits.append(Misfit(key="tokenizer.joint", value=False, fitting=(True,)))
        if tokenizer is not None and not has_counterpart(tokenizer):
            misfits.append(Misfit(key="tokenizer.byte_fallback", value=True, fitting=(False,)))
        return misfits


def names_of(tasks: tuple[type[Task], ...]) -> str:
    """Names of all tasks that are subclasses of `tasks`, quoted and joined with "or" for an error message."""
    return " or ".join(f'"{name}"' for name, task in TASKS.items() if issubclass(task, tasks))


def plain(model: ModelConfig) -> ModelConfig:
    """Replace redundant values of a `ModelConfig` with the defaults that mean the same, to compare configs."""
    d_k = model.d_k or model.d_model // model.heads
    family = FAMILIES[model.family]
    unused = {key: getattr(ModelConfig, key) for key in FAMILIES[ModelConfig.family].layers if key not in family.layers}
    return replace(
        model,
        kv_heads=None if model.kv_heads == model.heads else model.kv_heads,
        d_k=None if d_k * model.heads == model.d_model else d_k,
        d_v=None if model.d_v == d_k else model.d_v,
        tie="all" if not family.pairs and model.tie == "output" else model.tie,
        **unused,
    )


def read_config(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    """Read config.json in a model folder, or another JSON file with keys."""
    config = read_json(folder / name)
    if not isinstance(config, dict):
        raise InputError(f"{folder / name}: has no keys; download it again")
    return config


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(read_small(path, LARGEST))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); is it the folder of a model?") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); download it again") from error
