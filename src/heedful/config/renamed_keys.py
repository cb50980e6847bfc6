"""What keys of a recipe were called before: models that were saved then can still be read."""

from collections.abc import Mapping
from typing import Any

RENAMED = {"train": {"validate_bleu": "validate_decoding"}}  # by table: the old name, and the new one


def modern(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as it was stored, in today's names."""
    tables = {
        table: {new.get(key, key): value for key, value in stored[table].items()}
        for table, new in RENAMED.items()
        if isinstance(stored.get(table), Mapping)
    }
    return {**stored, **tables}
