"""Validation of recipe values: finds every problem at once, each with its place, its key and the remedy."""

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

from heedful.config.keys import hint_of, nearest, siblings, unknown_keys
from heedful.config.rules import Problem, impossible, size_problem
from heedful.config.schema import ArchitectureConfig, Recipe
from heedful.config.setting import bounds, range_text, setting_in
from heedful.config.user_code import find_class
from heedful.errors import InputError
from heedful.registry import ARCHITECTURES, Registry

KEY = "model.architecture"
OPTIONS: Registry[type[ArchitectureConfig]] = Registry("architecture", ARCHITECTURES.places)  # of heedful's own

OVERRIDES = ("--set ", "set ")  # the places of values from the command line and from Python begin so

_SHOWN = 8
_NOWHERE: Mapping[str, str] = MappingProxyType({})
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "dataclass_type": "a table",
}
_BOUNDS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
_CHOICE = re.compile(r"(literal|dict)\[")  # the part of a place that names one of several types
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_TRUTH = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}


def recipe_from_dict(values: Mapping[str, Any], where: str, places: Mapping[str, str] = _NOWHERE) -> Recipe:
    """Validate nested values against the schema, and build the recipe.

    Args:
        values: nested tables, as read from TOML or JSON; missing keys take their defaults.
        where: the source of the values in messages, usually a file.
        places: dotted key -> a more exact place, such as `config.toml, line 12`; other keys take their table's place.

    Raises:
        InputError: unknown keys, wrong types or impossible combinations; one message lists all of them.
    """
    try:
        options = options_of(architecture_in(values))
    except InputError as error:
        raise InputError(f"{_place(KEY, where, places)}: {error}") from error
    shared = {key: value for key, value in values.items() if key != "model"}
    unknown = enumerate(unknown_keys(values, options))  # a stranger's may be 10^5
    problems = [Problem(key, _unknown(key, options) if number < _SHOWN else key) for number, key in unknown]
    recipe, mistyped = _validated(adapter_of(Recipe), shared, "", options)
    model, mistyped_model = _validated(adapter_of(options), values.get("model", {}), "model.", options)
    problems += mistyped + mistyped_model
    if not (mistyped or mistyped_model):
        recipe = replace(recipe, model=model)
        problems += impossible(recipe)
    if problems:
        raise _refusal(problems, where, places)
    return recipe


def options_of(architecture: str) -> type[ArchitectureConfig]:
    """The dataclass of the keys of [model] for an architecture.

    That of a custom architecture is the attribute `Config` of its class, which extends `ArchitectureConfig`.
    """
    own = find_class(KEY, architecture)
    if own is None and architecture not in OPTIONS:
        near = get_close_matches(architecture, ARCHITECTURES) or ARCHITECTURES
        raise InputError(
            f'{KEY} = "{architecture}": there is no such architecture; did you mean {" or ".join(near)}? A class of '
            "your own is named as module:Class"
        )
    options = OPTIONS[architecture] if own is None else config_of(own)
    if not (isinstance(options, type) and issubclass(options, ArchitectureConfig) and is_dataclass(options)):
        raise InputError(
            f'{KEY} = "{architecture}": its class needs an attribute Config, a dataclass that extends '
            "heedful.config.schema.ArchitectureConfig"
        )
    return options


def config_of(own: type) -> Any:
    """The attribute Config of a class of the user's own, or of a class that it extends; None without one.

    Not by getattr, which may run code of its metaclass.
    """
    return next((vars(base)["Config"] for base in own.__mro__ if "Config" in vars(base)), None)


def architecture_in(values: Mapping[str, Any]) -> str:
    """The architecture that the values of a recipe name; the Transformer, unless they name one."""
    model = values.get("model")
    named = model.get("architecture") if isinstance(model, Mapping) else None
    return named if isinstance(named, str) else ArchitectureConfig.architecture


@cache
def adapter_of(table: type) -> TypeAdapter[Any]:
    """The validator of a dataclass of settings; that of a recipe leaves [model] to the one of its architecture."""
    return TypeAdapter(table)


def _validated(adapter: TypeAdapter[Any], values: Any, prefix: str, options: type) -> tuple[Any, list[Problem]]:
    """The object that JSON values stand for, and what is wrong with their types and ranges; None if something is."""
    try:
        # JSON mode is the strict mode that still takes lists for tuples and tables for dataclasses.
        return adapter.validate_json(json.dumps(values, default=_no_json), strict=True), []
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            # Of a field that takes a text or a table, pydantic reports both: the one that was meant counts.
            choice = str(next(reversed(detail["loc"]), ""))
            is_dict = isinstance(detail["input"], dict)
            if _CHOICE.match(choice) is None or choice.startswith("dict") == is_dict:
                problems.append(_mistyped(detail, prefix, options))
        return None, problems


def _no_json(value: Any) -> str | list[str]:
    """Convert a path to text; a TOML date becomes a list of text, which every field refuses with the value shown."""
    return os.fspath(value) if isinstance(value, os.PathLike) else [str(value)]


def _refusal(problems: list[Problem], where: str, places: Mapping[str, str]) -> InputError:
    rank = {place: number for number, place in enumerate(places.values())}
    placed = sorted(
        ((_place(_blamed(problem, places), where, places), problem.text) for problem in problems),
        key=lambda pair: rank.get(pair[0], -1),
    )
    lines = [f"{place}: {text}" for place, text in placed]
    if len(lines) == 1:
        return InputError(lines[0])
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return InputError("\n  ".join([f"{len(lines)} problems in the recipe", *lines[:_SHOWN], *more]))


def _blamed(problem: Problem, places: Mapping[str, str]) -> str:
    """The key to blame for a problem: an overridden one that it names, since the others stood before, else its own."""
    named = [problem.key, *re.findall(r"[\w.]+\w", problem.text)]
    return next((key for key in named if places.get(key, "").startswith(OVERRIDES)), problem.key)


def _place(key: str, where: str, places: Mapping[str, str]) -> str:
    while key and key not in places:
        key = key.rpartition(".")[0]
    return places.get(key, where)


def _unknown(key: str, options: type[ArchitectureConfig]) -> str:
    if near := nearest(key, options):
        return f"unknown key {key}; did you mean {' or '.join(near)}?"
    table = key.rpartition(".")[0]
    return f"unknown key {key}; {f'[{table}]' if table else 'a recipe'} may hold {', '.join(siblings(key, options))}"


def _mistyped(detail: ErrorDetails, prefix: str, options: type) -> Problem:
    """Describe an error of pydantic, of a type or a range, as a problem of the recipe."""
    key = (prefix + ".".join(part for part in map(str, detail["loc"]) if not _CHOICE.match(part))).rstrip(".")
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return Problem(key, f"{key} is missing")
    if kind == "too_long":
        return Problem(key, f"{key} takes {context['max_length']} values, not {len(value)}")
    hint = hint_of(key, options)
    if kind in _BOUNDS:
        return Problem(key, size_problem(key, value) or f"{key} must be {_range(hint, _BOUNDS[kind])}, but is {value}")
    choices = context.get("expected", "").split("'")[1::2]
    expected = " or ".join(f'"{choice}"' for choice in choices) or _EXPECTED.get(
        kind, context.get("expected", detail["msg"])
    )
    remedy = _remedy(key, kind, value, choices, setting_in(hint).values)
    return Problem(key, f"{key} must be {expected}, but is {_shown(value)}{f'; {remedy}' if remedy else ''}")


def _range(hint: Any, bound: str) -> str:
    """Describe the bound that a number breaks; for a share, both of them."""
    limits = bounds(hint)
    is_share = limits.get("ge") == 0 and 1 in (limits.get("le"), limits.get("lt"))
    return range_text(limits if is_share else {bound: limits[bound]})


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) and len(value) != 1 else json.dumps(value, ensure_ascii=False)


def _remedy(key: str, kind: str, value: Any, choices: list[str], other_names: Mapping[str, str]) -> str:
    """Suggest the correct spelling of a value, if the mistake is a common one; it may have other names elsewhere."""
    if kind == "tuple_type" and isinstance(value, dict):
        return f"write [[{key}]] with two brackets"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if kind == "bool_type" and str(value).lower() in _TRUTH:
        return f"write {_TRUTH[str(value).lower()]} without quotes"
    if kind in ("int_type", "float_type") and isinstance(value, str) and _NUMBER.fullmatch(value):
        return f"write {value} without quotes"
    other = [name for name in [other_names.get(str(value).lower())] if name in choices]
    close = other or get_close_matches(str(value), choices, n=1)
    return f'did you mean "{close[0]}"?' if close else ""
