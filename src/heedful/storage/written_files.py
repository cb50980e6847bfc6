"""Record of the files that heedful wrote, to recognise files that somebody else wrote or changed since.

A text file does not show who wrote it, so for each one a small file in the user's state folder records its size and its
modification time.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, is_stream
from heedful.storage.disk import UNFLUSHED


def note_written(path: Path) -> None:
    """Record that heedful has written a file, so that it may replace the file; devices and pipes are not recorded."""
    with suppress(OSError, RuntimeError):  # without a record the file counts as foreign, which is harmless
        if not is_stream(path):
            record = _record(path)
            record.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(record, UNFLUSHED, writer=f"{os.getpid()}-") as stream:
                stream.write(_state(path))


def is_foreign(path: Path) -> bool:
    """Return True if a file contains bytes that heedful did not write, which replacing it would lose."""
    if is_stream(path) or not path.exists() or path.stat().st_size == 0:
        return False
    try:
        return _record(path).read_bytes() != _state(path)
    except (OSError, RuntimeError):
        return True


@contextmanager
def own_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Write a file atomically for a function of the Python interface, and record that heedful wrote it.

    A file that heedful did not write is an error unless `replace` is True.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give a file in it")
    if not replace and is_foreign(path):
        raise InputError(
            f"{path}: already exists, and heedful did not write it, or it has changed since; choose another file, "
            "or replace it with replace=True"
        )
    with atomic_file(path) as stream:
        yield stream
    note_written(path)


def state_folder() -> Path:
    """Return the user's folder in which programs keep their state between runs."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def _record(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return state_folder() / "heedful" / "written" / f"{name}.json"


def _state(path: Path) -> bytes:
    status = path.stat()
    return json.dumps({"bytes": status.st_size, "changed_ns": status.st_mtime_ns}).encode()
