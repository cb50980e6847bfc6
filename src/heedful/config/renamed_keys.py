"""Recipes saved by older versions: renamed keys, and settings that older versions did not have."""

from collections.abc import Mapping
from typing import Any

from heedful.config.keys import hints_of, table_of
from heedful.config.schema import Recipe
from heedful.config.setting import setting_in


def current_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the keys of a stored recipe to the current names, and set what older versions did without a key."""
    return {**_renamed(stored, Recipe), **_of_raw_labels(stored)}


def _renamed(values: Mapping[str, Any], table: type) -> dict[str, Any]:
    """Rename the keys of a table and of the tables inside it that had another name before."""
    hints = hints_of(table)
    names = {former: name for name, hint in hints.items() for former in setting_in(hint).former}
    renamed = {names.get(key, key): value for key, value in values.items()}
    return {
        key: _renamed(value, inner) if isinstance(value, Mapping) and (inner := table_of(hints.get(key))) else value
        for key, value in renamed.items()
    }


def _of_raw_labels(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the data of an older regression, which has learned the numbers as they are."""
    data = stored.get("data")
    if stored.get("task") != "regression" or not isinstance(data, Mapping) or data.get("label_scale") is not None:
        return {}
    return {"data": {**data, "label_mean": 0.0, "label_scale": 1.0}}
