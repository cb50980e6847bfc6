"""The disk: every change goes through one object, so that tests can let each one fail; small files are read with care.

A small file may come from a stranger: a pipe, a device and a file that is too large are refused.
"""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO


class Storage:
    """Operations on a local file system. All methods raise OSError; `list` sorts by name."""

    def make_folder(self, folder: Path) -> None:
        folder.mkdir()

    def create(self, path: Path) -> BinaryIO:
        return path.open("xb")

    def flush(self, path: Path) -> None:
        """Flush a file or a folder: return when its bytes or its entries are on the disk."""
        windows = sys.platform == "win32"  # flushes files that are open for writing only, and no folders
        if windows and path.is_dir():
            return
        descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file over another, or a folder to a free name, in one atomic step."""
        os.replace(old, new)  # os.rename replaces nothing on Windows

    def remove_file(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, folder: Path) -> None:
        folder.rmdir()

    def list(self, folder: Path) -> list[Path]:
        return sorted(folder.iterdir())


class Unflushed(Storage):
    """A local file system on which nothing is flushed, for many small files that can be made again.

    A killed process leaves no half file behind, as with any storage. The loss of power may, within the half minute or
    so that the operating system takes to bring files to the disk by itself.
    """

    def flush(self, path: Path) -> None:
        """Do nothing: flushing a small file takes longer than making it."""


DISK = Storage()
UNFLUSHED = Unflushed()

MAX_SETTINGS_BYTES = 1 << 22  # bytes of a manifest, a recipe or other settings


def read_small(path: Path, most: int = MAX_SETTINGS_BYTES) -> bytes:
    """Read a whole file, if it is one and holds at most so many bytes."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, and should have {most:,} at most", str(path))
    return path.read_bytes()
