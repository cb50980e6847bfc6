"""What a config.json of Hugging Face says about a model, in terms of `ModelConfig`, and the other way round."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.tasks import TASKS, find_task
from heedful.tasks.task import Task
from heedful.text.export import has_counterpart

CONFIG = "config.json"

# Their functions, those by which they are written first; "gelu_new" and "gelu_pytorch_tanh" are the approximation.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
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
)


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A key of a recipe with a value that another format does not have.

    Attributes:
        key: With its table, such as "model.norm".
        value: In the recipe.
        fitting: The values that the format has; None stands for a key that is left out.
    """

    key: str
    value: Any
    fitting: tuple[Any, ...]

    def __str__(self) -> str:
        wanted = "left out" if self.fitting == (None,) else f"= {' or '.join(map(json.dumps, self.fitting))}"
        return f"{self.key} {wanted}, not {json.dumps(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the models of one type are described.

    Attributes:
        model_type: What config.json calls the type.
        classes: How the names of its classes begin.
        tasks: What heedful's models of the type are for.
        keys: Their key -> the field of `ModelConfig`; several keys may be one field.
        activation: Their key of the activation.
        fixed: Fields that all models of the type have alike, where they are not the default.
        needed: Their keys that must have this value, or be absent, for the model to be one of heedful's.
    """

    model_type: str
    classes: str
    tasks: tuple[type[Task], ...]
    keys: Mapping[str, str]
    activation: str
    fixed: Mapping[str, Any]
    needed: Mapping[str, Any]

    def fields(self, config: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Fields of `ModelConfig`.

        Raises:
            InputError: The model is of another type, or a setting is missing or asks for what heedful's models do not
                do; all are listed.
        """
        self._check_type(config, where)
        problems = [f"has no {key}" for key in (*self.keys, self.activation, "vocab_size") if key not in config]
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

    def config(self, recipe: Recipe, tokenizer: TokenizerConfig) -> dict[str, Any]:
        """The settings of a model.

        Args:
            recipe: What the model was trained with.
            tokenizer: What its tokenizers were trained with.

        Raises:
            InputError: The model is none of this type; every key that keeps it from being one is listed.
        """
        refused = f'the model "{recipe.name}" cannot become a {self.model_type} model of Hugging Face'
        self._check_task(recipe, refused)
        if misfits := self._misfits(recipe, tokenizer):
            listed = "\n  ".join(map(str, misfits))
            raise InputError(
                f"{refused}, and what it has learned cannot be changed afterwards. A model that is to be converted has "
                f"to be trained with\n  {listed}"
            )
        values = {key: getattr(recipe.model, field) for key, field in self.keys.items()}
        values[self.activation] = WRITTEN[recipe.model.activation]
        return {"model_type": self.model_type, **self.needed, **values}

    def _misfits(self, recipe: Recipe, tokenizer: TokenizerConfig) -> list[Misfit]:
        own = asdict(plain(recipe.model))
        theirs = asdict(ModelConfig(**self.fixed, **{field: own[field] for field in self.keys.values()}))
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
        if not has_counterpart(tokenizer):
            misfits.append(Misfit(key="tokenizer.byte_fallback", value=True, fitting=(False,)))
        return misfits

    def _check_task(self, recipe: Recipe, refused: str) -> None:
        if not issubclass(find_task(recipe.task), self.tasks):
            raise InputError(
                f'{refused}: it is for the task "{recipe.task}", and such a model is for {names_of(self.tasks)}'
            )

    def _check_type(self, config: Mapping[str, Any], where: str) -> None:
        kind, names = config.get("model_type", self.model_type), config.get("architectures") or []
        known = isinstance(names, list) and all(str(name).startswith(self.classes) for name in names)
        if kind != self.model_type or not known:
            raise InputError(
                f"{where}: model_type is {json.dumps(kind)} and architectures are {json.dumps(names)}: that is no "
                f'"{self.model_type}" with an architecture such as {self.classes}Model, and read as one it would '
                "compute something else"
            )


def names_of(tasks: tuple[type[Task], ...]) -> str:
    """The tasks that are these or of their kind, for a sentence."""
    return " or ".join(f'"{name}"' for name, task in TASKS.items() if issubclass(task, tasks))


def plain(model: ModelConfig) -> ModelConfig:
    """The same model with defaults for all that says no more than they do."""
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
    """The contents of a folder's config.json, or of another file.

    Raises:
        InputError: It is missing or damaged.
    """
    config = read_json(folder / name)
    if not isinstance(config, dict):
        raise InputError(f"{folder / name}: has no keys; download it again")
    return config


def read_json(path: Path) -> Any:
    """The contents of a file.

    Raises:
        InputError: It is missing or damaged.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); is it the folder of a model?") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); download it again") from error
