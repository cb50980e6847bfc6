"""Checks of recipe values that have the right types and ranges but cannot work: combinations, see `config.rules`.

All checks look at the recipe only: missing files or a missing GPU are found by `heedful.train.preflight`.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from heedful.config.rules import REMARKS, RULES_OF
from heedful.config.schema import Recipe


@dataclass(frozen=True)
class Problem:
    """Problem found in a recipe: the dotted key at which to fix it, and a message."""

    key: str
    text: str


LARGEST = 2**63 - 1  # of any number, in size: what a tensor counts with


def remarks(recipe: Recipe) -> list[str]:
    """List the remarks on a valid recipe that a user should know."""
    return [rule.text.format(r=recipe) for rule in REMARKS if rule.broken(recipe)]


def impossible(recipe: Recipe) -> list[Problem]:
    """List the problems of a recipe whose values have the right types and ranges; rules hold for possible numbers."""
    return [Problem(key, text) for key, value in _numbers(asdict(recipe)) if (text := size_problem(key, value))] or [
        Problem(rule.key, rule.text.format(r=recipe))
        for options, rules in RULES_OF.items()
        for rule in rules
        if isinstance(recipe.model, options) and rule.broken(recipe)
    ]


def size_problem(key: str, value: float) -> str | None:
    """Describe a number that no tensor can hold; None for one of a usual size."""
    if abs(value) <= LARGEST:
        return None
    size = "a finite number" if isinstance(value, float) and not math.isfinite(value) else "less than 2^63"
    return f"{key} must be {size}, but is {value}"


def _numbers(values: Any, key: str = "") -> Iterator[tuple[str, int | float]]:
    """Iterate over every number of a nested value, with its dotted key."""
    if isinstance(values, int | float) and not isinstance(values, bool):
        yield key, values
    elif isinstance(values, dict | tuple):
        inside = values.items() if isinstance(values, dict) else enumerate(values)
        for name, value in inside:
            yield from _numbers(value, f"{key}.{name}".lstrip("."))
