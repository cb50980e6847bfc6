"""Record of the files that heedful wrote, by which one that somebody else wrote, or changed since, is recognised.

A file of text does not show who wrote it, so a small file of the user's state folder notes size and time of each.
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
    """Note that heedful has written a file, which it may replace the next time; a device or a pipe is not noted."""
    with suppress(OSError, RuntimeError):  # without the note the file counts as foreign, which harms nothing
        if not is_stream(path):
            record = _record(path)
            record.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(record, UNFLUSHED, writer=f"{os.getpid()}-") as stream:
                stream.write(_state(path))


def is_foreign(path: Path) -> bool:
    """True if replacing a file would lose something that heedful did not write: it holds bytes of another."""
    if is_stream(path) or not path.exists() or path.stat().st_size == 0:
        return False
    try:
        return _record(path).read_bytes() != _state(path)
    except (OSError, RuntimeError):
        return True


@contextmanager
def own_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Open a file to write from Python, which gets its name when all is written, and note that heedful wrote it."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    if not replace and is_foreign(path):
        raise InputError(
            f"{path}: is there already, and heedful did not write it or it was changed since; name another file, or "
            "replace it with replace=True"
        )
    with atomic_file(path) as stream:
        yield stream
    note_written(path)


def state_folder() -> Path:
    """Folder of the user for what programs remember between their runs."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def _record(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return state_folder() / "heedful" / "written" / f"{name}.json"


def _state(path: Path) -> bytes:
    status = path.stat()
    return json.dumps({"bytes": status.st_size, "changed_ns": status.st_mtime_ns}).encode()
