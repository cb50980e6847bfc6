"""Dotted keys of a recipe: lists them, finds unknown ones, and suggests the keys that a user probably meant."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from heedful.config.schema import ArchitectureConfig, ModelConfig, Recipe
from heedful.config.setting import Resume, Setting, bare, descriptions, setting_in


class _Path:
    """Dotted key that grows by each attribute: the text of `path.train.seed` is "train.seed"."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> "_Path":
        return _Path(f"{self._path}.{name}".lstrip("."))

    def __str__(self) -> str:
        return self._path


KEYS = cast("Recipe", _Path())  # a key is written as a value is read: str(KEYS.train.seed) is "train.seed"


def table_of(hint: Any, options: type = ModelConfig) -> type | None:
    """Find the dataclass in a field's type, such as `CorpusConfig | None` or `tuple[CorpusConfig, ...]`."""
    hint = bare(hint)
    table = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    return options if table is not None and issubclass(table, ArchitectureConfig) else table


@cache
def hints_of(table: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, with all that they say about themselves."""
    hints = get_type_hints(table, include_extras=True)
    return {field.name: hints[field.name] for field in fields(table)}


@cache
def hints_of_keys(options: type = ModelConfig) -> Mapping[str, Any]:
    """The type of every dotted key and table of a recipe; a list of tables is listed once, with the number 0."""
    return dict(_hints_below(Recipe, options, ""))


def _hints_below(table: type, options: type, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, hint in hints_of(table).items():
        yield f"{prefix}{name}", hint
        if inner := table_of(hint, options):
            index = "0." if Ellipsis in get_args(bare(hint)) else ""
            yield from _hints_below(inner, options, f"{prefix}{name}.{index}")


def tables_of(table: type) -> Iterator[type]:
    """Iterate over the dataclasses of the tables inside a table, at every depth."""
    for hint in hints_of(table).values():
        if inner := table_of(hint):
            yield inner
            yield from tables_of(inner)


def all_keys(options: type = ModelConfig) -> Iterator[str]:
    """Iterate over every dotted key and table of a recipe; a list of tables is listed once, with the number 0."""
    yield from hints_of_keys(options)


def hint_of(key: str, options: type = ModelConfig) -> Any:
    """The type of a dotted key, or of the nearest table or list around it; None for a key that no recipe has."""
    hints = hints_of_keys(options)
    key = re.sub(r"\.\d+\.", ".0.", key)
    while key and key not in hints:
        key = key.rpartition(".")[0]
    return hints.get(key)


def settings_around(key: str, options: type = ModelConfig) -> Iterator[Setting]:
    """Iterate over the facts of a dotted key, then over those of the tables that hold it, from the inside out."""
    while key:
        if key in hints_of_keys(options):
            yield setting_in(hints_of_keys(options)[key])
        key = key.rpartition(".")[0]


def description_of(key: str) -> tuple[str, Sequence[str]]:
    """The description of a dotted key, and the names of all settings of its table."""
    *tables, name = key.split(".")
    table: type = Recipe
    for inner in tables:
        table = table_of(hints_of(table)[inner]) or table
    return descriptions(table)[name], list(hints_of(table))


def resumption(key: str, options: type = ModelConfig) -> Resume:
    """Whether a resumed run may have another value of a dotted key: as its setting says, or the tables that hold it."""
    for setting in settings_around(key, options):
        if setting.resume is not None:
            return setting.resume
    return "ask"


def is_per_machine(key: str, options: type = ModelConfig) -> bool:
    """True if the machines of a run may have different values of a dotted key."""
    return any(setting.per_machine for setting in settings_around(key, options))


def unknown_keys(values: Any, options: type = ModelConfig, table: type = Recipe, prefix: str = "") -> Iterator[str]:
    """Iterate over the dotted keys in `values` that a recipe does not have; `options` is the dataclass of [model]."""
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from unknown_keys(item, options, table, f"{prefix}{index}.")
    elif isinstance(values, dict):
        hints = hints_of(table)
        for key, value in values.items():
            if key not in hints:
                yield f"{prefix}{key}"
            elif inner := table_of(hints[key], options):
                yield from unknown_keys(value, options, inner, f"{prefix}{key}.")


@cache
def other_names(options: type = ModelConfig) -> Mapping[str, str]:
    """The keys of a recipe by their names in other toolkits and in older versions of heedful."""
    facts = ((key, setting_in(hint)) for key, hint in hints_of_keys(options).items())
    return {name: key for key, setting in facts for name in (*setting.aliases, *setting.former)}


def nearest(key: str, options: type = ModelConfig) -> list[str]:
    """Suggest the valid recipe keys that an unknown `key` most likely stands for, at most three.

    Keys of the same name in another table come first, then names in other toolkits, then similar spellings.
    """
    index = re.search(r"\.(\d+)\.", key)
    key = re.sub(r"\.\d+\.", ".0.", key)
    leaf = _leaf(key)
    keys = list(all_keys(options))
    suggestions = same_name(leaf, options) or get_close_matches(key, keys, n=1, cutoff=0.8)
    if not suggestions:
        close = get_close_matches(leaf, sorted(set(map(_leaf, keys))), n=1, cutoff=0.7)
        suggestions = [other for other in keys if _leaf(other) in close]
    return [other.replace(".0.", index[0] if index else ".0.") for other in suggestions[:3]]


def same_name(name: str, options: type = ModelConfig) -> list[str]:
    """List the keys of this name, with or without the name of the table; else the one that has it in other toolkits."""
    keys = [key for key in all_keys(options) if name in (key, _leaf(key))]
    other = other_names(options).get(name)
    return keys or ([] if other is None else [other])


def siblings(key: str, options: type = ModelConfig) -> list[str]:
    """List the names that are valid in the table that contains `key`."""
    table = re.sub(r"\.\d+\b", ".0", key.rpartition(".")[0])
    start = f"{table}." if table else ""
    return [other[len(start) :] for other in all_keys(options) if re.fullmatch(re.escape(start) + r"[^.]+", other)]


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
