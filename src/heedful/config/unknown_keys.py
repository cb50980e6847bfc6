"""Unknown keys in a recipe, such as misspelt ones: each is reported with the key that was probably meant."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from heedful.config.keys import hints_of, hints_of_keys, table_of
from heedful.config.schema import ModelConfig, Recipe
from heedful.config.setting import setting_in
from heedful.wording import did_you_mean


def unknown_keys(
    values: Any, options: type = ModelConfig, table: type = Recipe, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Iterate over the dotted keys in `values` that a recipe does not have, with their values.

    `options` is the type of [model].
    """
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from unknown_keys(item, options, table, f"{prefix}{index}.")
    elif isinstance(values, dict):
        hints = hints_of(table)
        for key, value in values.items():
            if key not in hints:
                yield f"{prefix}{key}", value
            elif inner := table_of(hints[key], options):
                yield from unknown_keys(value, options, inner, f"{prefix}{key}.")


def unknown_key_message(key: str, options: type = ModelConfig, *, is_table: bool = False) -> str:
    """Describe an unknown key, and suggest similar keys or, if there are none, list all keys of its table."""
    unknown = f"unknown table [{key}]" if is_table else f"unknown key {key}"
    if _leaf(key) == "preset":
        return f"{unknown}; write preset at the top of the recipe, before its first table"
    if (
        options is not ModelConfig
        and key.removeprefix("model.") in hints_of(ModelConfig).keys() - hints_of(Recipe).keys()
    ):
        near = [f"model.{name}" for name in hints_of(options) if _leaf(key).endswith(f"_{name}")]
        remedy = did_you_mean(near) if near else "remove it"
        return f"{unknown}: it is a key of the Transformer, not of the recipe's architecture; {remedy}"
    if near := nearest(key, options):
        if is_table:  # a setting stands for its table
            hints = hints_of_keys(options)
            tables = [name if table_of(hints[name]) else name.rpartition(".")[0] for name in near]
            near = [f"[{table}]" if table else name for name, table in zip(near, tables, strict=True)]
        return f"{unknown}; {did_you_mean(dict.fromkeys(near))}"
    table = key.rpartition(".")[0]
    inside = re.sub(r"\.\d+\b", ".0", table)
    names = [_leaf(other) for other in hints_of_keys(options) if other.rpartition(".")[0] == inside]
    names += [] if table else ["preset"]
    return f"{unknown}; {f'[{table}]' if table else 'a recipe'} can contain {', '.join(names)}"


def nearest(key: str, options: type = ModelConfig) -> list[str]:
    """Suggest the valid recipe keys that an unknown `key` most likely stands for, at most three.

    Suggestions are keys of the same name in other tables; otherwise, the key that has this name in another toolkit or
    in an older version; otherwise, keys with a similar spelling.
    """
    index = re.search(r"\.(\d+)\.", key)
    key = re.sub(r"\.\d+\.", ".0.", key)
    leaf = _leaf(key)
    keys = list(hints_of_keys(options))
    suggestions = same_name(leaf, options) or get_close_matches(key, keys, n=1, cutoff=0.8)
    if not suggestions:
        close = get_close_matches(leaf, sorted(set(map(_leaf, keys))), n=1, cutoff=0.7 if "." in key else 0.8)
        suggestions = [other for other in keys if _leaf(other) in close]
    return [other.replace(".0.", index[0] if index else ".0.") for other in suggestions[:3]]


def same_name(name: str, options: type = ModelConfig) -> list[str]:
    """List the keys with a given name, which may include the table.

    If there are none, list the key that has this name in another toolkit or in an older version, if any.
    """
    keys = [key for key in hints_of_keys(options) if name in (key, _leaf(key))]
    other = _other_names(options).get(name)
    return keys or ([] if other is None else [other])


@cache
def _other_names(options: type) -> Mapping[str, str]:
    """Map the names that settings have in other toolkits and in older versions of heedful to their keys."""
    settings = ((key, setting_in(hint)) for key, hint in hints_of_keys(options).items())
    return {name: key for key, setting in settings for name in (*setting.aliases, *setting.former)}


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
