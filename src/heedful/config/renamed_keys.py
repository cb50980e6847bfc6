"""Recipes saved by older versions: renamed keys, and settings that older versions did not have."""

from collections.abc import Mapping
from typing import Any

RENAMED = {"train": {"validate_bleu": "validate_decoding"}}  # for each table: old names, and the new ones


def current_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the keys of a stored recipe to the current names, and set what older versions did without a key."""
    tables = {
        table: {new.get(key, key): value for key, value in stored[table].items()}
        for table, new in RENAMED.items()
        if isinstance(stored.get(table), Mapping)
    }
    return {**stored, **tables, **_of_raw_labels(stored)}


def _of_raw_labels(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the data of an older regression, which has learned the numbers as they are."""
    data = stored.get("data")
    if stored.get("task") != "regression" or not isinstance(data, Mapping) or data.get("label_scale") is not None:
        return {}
    return {"data": {**data, "label_mean": 0.0, "label_scale": 1.0}}
