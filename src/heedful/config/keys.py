"""Dotted keys of a recipe, such as `train.seed`: their types, facts and descriptions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from heedful.config.schema import ArchitectureConfig, ModelConfig, Recipe
from heedful.config.setting import ResumeRule, Setting, bare, descriptions, setting_in


class _Path:
    """Dotted key that each attribute access extends: the text of `path.train.seed` is "train.seed"."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> "_Path":
        return _Path(f"{self._path}.{name}".lstrip("."))

    def __str__(self) -> str:
        return self._path


KEYS = cast("Recipe", _Path())  # keys are written like attributes: str(KEYS.train.seed) is "train.seed"


def table_of(hint: Any, options: type = ModelConfig) -> type | None:
    """Find the dataclass in a field's type, such as `CorpusConfig | None` or `tuple[CorpusConfig, ...]`, if any.

    For the type of [model], return `options`, the settings class of the recipe's architecture.
    """
    hint = bare(hint)
    table = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    return options if table is not None and issubclass(table, ArchitectureConfig) else table


@cache
def hints_of(table: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass, including its `Annotated` metadata."""
    hints = get_type_hints(table, include_extras=True)
    return {field.name: hints[field.name] for field in fields(table)}


@cache
def hints_of_keys(options: type = ModelConfig) -> Mapping[str, Any]:
    """Return the type of every dotted key and table of a recipe; a list of tables has one entry, with index 0."""
    hints: dict[str, Any] = {}

    def add(table: type, prefix: str) -> None:
        for name, hint in hints_of(table).items():
            hints[f"{prefix}{name}"] = hint
            if inner := table_of(hint, options):
                index = "0." if Ellipsis in get_args(bare(hint)) else ""
                add(inner, f"{prefix}{name}.{index}")

    add(Recipe, "")
    return hints


def hint_of(key: str, options: type = ModelConfig) -> Any:
    """Return the type of a dotted key or, if it is unknown, of the innermost table or list that would contain it.

    Returns None if there is no such table.
    """
    hints = hints_of_keys(options)
    key = re.sub(r"\.\d+\.", ".0.", key)
    while key and key not in hints:
        key = key.rpartition(".")[0]
    return hints.get(key)


def settings_around(key: str, options: type = ModelConfig) -> Iterator[Setting]:
    """Iterate over the `Setting` of a dotted key, then those of the tables that contain it, from the inside out."""
    while key:
        if key in hints_of_keys(options):
            yield setting_in(hints_of_keys(options)[key])
        key = key.rpartition(".")[0]


def resume_rule(key: str, options: type = ModelConfig) -> ResumeRule:
    """Return the rule for changing a dotted key in a resumed run: its own, or the rule of a table that contains it."""
    for setting in settings_around(key, options):
        if setting.resume is not None:
            return setting.resume
    return "ask"


def is_per_machine(key: str, options: type = ModelConfig) -> bool:
    """Return True if the machines of a run may have different values for a dotted key."""
    return any(setting.per_machine for setting in settings_around(key, options))


def description_of(key: str) -> tuple[str, Sequence[str]]:
    """Return the description of a dotted key, and the names of all settings of its table."""
    table, _, name = key.rpartition(".")
    kind = table_of(hints_of_keys()[table]) or Recipe if table else Recipe
    return descriptions(kind)[name], list(hints_of(kind))
