"""Renamed recipe keys: reads recipes saved by older versions."""

from collections.abc import Mapping
from typing import Any

RENAMED = {"train": {"validate_bleu": "validate_decoding"}}  # for each table: old names, and the new ones


def current_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the keys of a stored recipe to the current names."""
    tables = {
        table: {new.get(key, key): value for key, value in stored[table].items()}
        for table, new in RENAMED.items()
        if isinstance(stored.get(table), Mapping)
    }
    return {**stored, **tables}
