"""Validation of recipe values: one message lists several problems, each with its location, its key and a remedy."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from heedful.config.keys import hint_of
from heedful.config.rules import Problem, impossible, size_problem
from heedful.config.schema import ArchitectureConfig, Recipe
from heedful.config.setting import bounds, range_text, setting_in
from heedful.config.unknown_keys import nearest, unknown_key_message, unknown_keys
from heedful.config.user_code import find_class
from heedful.errors import InputError
from heedful.registry import ARCHITECTURES, Registry
from heedful.wording import did_you_mean, either

KEY = "model.architecture"
OPTIONS: Registry[type[ArchitectureConfig]] = Registry("architecture", ARCHITECTURES.places)  # of the built-in ones

OVERRIDES = ("--set ", "set ")  # beginnings of the locations of values from the command line and from Python

_MAX_PROBLEMS = 8  # in a message
_NO_LOCATIONS: Mapping[str, str] = MappingProxyType({})
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "dataclass_type": "a table",
}
_PAIRS = {  # lists of two values, by the last part of their keys
    "size": "a list of height and width, such as [32, 32]",
    "betas": "a list of two numbers, such as [0.9, 0.98]",
    "part": "a list of two shares, such as [0.0, 0.9]",
}
_BOUNDS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
_CHOICE = re.compile(r"(literal|dict)\[")  # the part of a location that names one of several types
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_TRUTH = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}


def recipe_from_dict(values: Mapping[str, Any], where: str, locations: Mapping[str, str] = _NO_LOCATIONS) -> Recipe:
    """Validate nested values against the schema, and build the recipe.

    Args:
        values: Nested tables, as read from TOML or JSON; missing keys take their defaults.
        where: The source of the values in messages, usually a file.
        locations: A more exact location for each dotted key, such as `config.toml, line 12`. A missing key has the
            location of its table.

    Raises:
        InputError: unknown keys, wrong types or impossible combinations; one message lists up to eight of them.
    """
    try:
        options = options_of(architecture_in(values))
    except InputError as error:
        raise InputError(f"{_location(KEY, where, locations)}: {error}") from error
    unknown = list(unknown_keys(values, options))
    problems = [
        # A model folder from a stranger may contain 100,000 unknown keys, and suggestions take time.
        Problem(key, key if number >= _MAX_PROBLEMS else unknown_key_message(key, options, is_table=_is_table(value)))
        for number, (key, value) in enumerate(unknown)
    ]
    shared = {key: value for key, value in values.items() if key != "model"}
    recipe, mistyped = _validated(adapter_of(Recipe), shared, "", options)
    model, mistyped_model = _validated(adapter_of(options), values.get("model", {}), "model.", options)
    problems += mistyped + mistyped_model
    if not (mistyped or mistyped_model):
        recipe = replace(recipe, model=model)
        # The default of a key with a misspelt name is not the user's choice.
        meant = {name for key, _ in unknown[:_MAX_PROBLEMS] for name in nearest(key, options)}
        problems += [problem for problem in impossible(recipe) if problem.key not in meant]
    if problems:
        raise _refusal(problems, where, locations)
    return recipe


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def options_of(architecture: str) -> type[ArchitectureConfig]:
    """Return the dataclass of the keys of [model] for an architecture.

    For a custom architecture, it is the attribute `Config` of its class; `Config` must extend `ArchitectureConfig`.
    """
    custom = find_class(KEY, architecture)
    if custom is None and architecture not in OPTIONS:
        near = get_close_matches(architecture, ARCHITECTURES)
        remedy = did_you_mean(near) if near else f"choose one of {', '.join(ARCHITECTURES)}."
        raise InputError(
            f'{KEY} = "{architecture}": unknown architecture; {remedy} Give a custom class as module:Class'
        )
    options = OPTIONS[architecture] if custom is None else config_of(custom)
    if not (isinstance(options, type) and issubclass(options, ArchitectureConfig) and is_dataclass(options)):
        raise InputError(
            f'{KEY} = "{architecture}": its class needs an attribute Config, a dataclass that extends '
            "heedful.config.schema.ArchitectureConfig"
        )
    return options


def config_of(custom: type) -> Any:
    """Return the attribute Config of a custom class or of a class that it extends, or None if there is none."""
    # Not with getattr, which may run code of the class's metaclass.
    return next((vars(base)["Config"] for base in custom.__mro__ if "Config" in vars(base)), None)


def architecture_in(values: Mapping[str, Any]) -> str:
    """Return the architecture that the values of a recipe specify, by default "transformer"."""
    model = values.get("model")
    name = model.get("architecture") if isinstance(model, Mapping) else None
    return name if isinstance(name, str) else ArchitectureConfig.architecture


@cache
def adapter_of(table: type) -> TypeAdapter[Any]:
    """Return pydantic's validator for a settings dataclass; that for `Recipe` leaves [model] to another validator."""
    return TypeAdapter(table)


def _validated(adapter: TypeAdapter[Any], values: Any, prefix: str, options: type) -> tuple[Any, list[Problem]]:
    """Build an object from JSON values; return it and an empty list, or None and the problems with types and ranges."""
    try:
        # JSON mode is the strict mode that still accepts lists for tuples and tables for dataclasses.
        return adapter.validate_json(json.dumps(values, default=_to_json), strict=True), []
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            # For a field that takes text or a table, pydantic reports an error for each of the two types; only the
            # error for the type of the value counts.
            choice = str(next(reversed(detail["loc"]), ""))
            is_dict = isinstance(detail["input"], dict)
            if _CHOICE.match(choice) is None or choice.startswith("dict") == is_dict:
                problems.append(_mistyped(detail, prefix, options))
        return None, problems


def _to_json(value: Any) -> str | list[list[str]]:
    """Convert a path to text, and other values, such as TOML dates, to a list that every field rejects."""
    return os.fspath(value) if isinstance(value, os.PathLike) else [[str(value)]]


def _mistyped(detail: ErrorDetails, prefix: str, options: type) -> Problem:
    """Describe a pydantic error about a type or a range as a problem in the recipe."""
    key = (prefix + ".".join(part for part in map(str, detail["loc"]) if not _CHOICE.match(part))).rstrip(".")
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return Problem(key, f"{key} is missing")
    if kind == "too_long":
        return Problem(key, f"{key} takes {context['max_length']} values, not {len(value)}")
    hint = hint_of(key, options)
    if kind in _BOUNDS:
        limits = bounds(hint)
        is_share = limits.get("ge") == 0 and 1 in (limits.get("le"), limits.get("lt"))
        # Report both bounds of a share, but only the violated bound of another number.
        limits = limits if is_share else {_BOUNDS[kind]: limits[_BOUNDS[kind]]}
        return Problem(key, size_problem(key, value) or f"{key} must be {range_text(limits)}, but is {value:,}")
    choices = context.get("expected", "").split("'")[1::2]
    expected = _EXPECTED.get(kind, context.get("expected", detail["msg"]))
    if kind == "tuple_type":
        expected = _PAIRS.get(key.rpartition(".")[2], expected)
    if choices:
        expected = either(f'"{choice}"' for choice in choices)
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        text = "a table"
    elif isinstance(value, list) and len(value) != 1:
        text = "a list"
    remedy = _remedy(key, kind, value, choices, setting_in(hint).values)
    return Problem(key, f"{key} must be {expected}, but is {text}{f'; {remedy}' if remedy else ''}")


def _remedy(key: str, kind: str, value: Any, choices: list[str], other_names: Mapping[str, str]) -> str:
    """Suggest the correct spelling of a value if the mistake is a common one, such as a name from another toolkit."""
    if kind == "tuple_type" and isinstance(value, dict):
        return f"write [[{key}]] with two brackets"
    if key == "data.train":
        return "to change the file of its first table, set data.train.0.source"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if kind == "bool_type" and str(value).lower() in _TRUTH:
        truth = _TRUTH[str(value).lower()]
        return f"write {truth}" + " without quotes" * (value == truth)
    if kind in ("int_type", "float_type") and isinstance(value, str) and _NUMBER.fullmatch(value):
        return f"write {value} without quotes"
    other = [name for name in [other_names.get(str(value).lower())] if name in choices]
    same = [name for name in choices if name.lower() == str(value).lower()]
    close = other or same or get_close_matches(str(value), choices, n=1)
    return did_you_mean(close[:1]) if close else ""


def _refusal(problems: list[Problem], where: str, locations: Mapping[str, str]) -> InputError:
    """Create the error that lists the first problems, in the order of their locations, and counts the others."""
    located = []
    for problem in problems:
        # If the problem mentions an overridden key, blame the override: the other keys were there before.
        names = [problem.key, *re.findall(r"[\w.]+\w", problem.text)]
        key = next((key for key in names if locations.get(key, "").startswith(OVERRIDES)), problem.key)
        located.append((_location(key, where, locations), problem.text))
    rank = {location: number for number, location in enumerate(locations.values())}
    located.sort(key=lambda pair: rank.get(pair[0], -1))
    lines = [f"{location}: {text}" for location, text in located]
    if len(lines) == 1:
        return InputError(lines[0])
    more = [f"and {len(lines) - _MAX_PROBLEMS} more"] if len(lines) > _MAX_PROBLEMS else []
    return InputError("\n  ".join([f"{len(lines)} problems in the recipe", *lines[:_MAX_PROBLEMS], *more]))


def _location(key: str, where: str, locations: Mapping[str, str]) -> str:
    if key not in locations:  # a table may exist only because of an override of one of its keys
        inside = [place for name, place in locations.items() if name.startswith(f"{key}.")]
        if inside and all(place.startswith(OVERRIDES) for place in inside):
            return inside[0]
    while key and key not in locations:
        key = key.rpartition(".")[0]
    return locations.get(key, where)
