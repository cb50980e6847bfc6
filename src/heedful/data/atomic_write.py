"""Atomic writes: a file appears as a whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Context manager to write a file atomically: under a hidden name, renamed at the end, removed after an error.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
