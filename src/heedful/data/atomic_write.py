"""A file that is there as a whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write under a hidden name; the file gets its own if nothing is raised, and is removed otherwise.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
