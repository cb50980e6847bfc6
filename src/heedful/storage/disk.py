"""The disk. Every change to it goes through a `Storage` object, so that tests can make any change fail.

`read_small` rejects pipes, devices and files that are too large, since a file may come from anywhere. Compressed files
(gzip, bzip2 and xz) are recognised by their extension or by their first bytes.
"""

import bz2
import errno
import gzip
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO


class Storage:
    """Operations on a local file system. They raise an OSError if they fail."""

    def make_folder(self, folder: Path) -> None:
        folder.mkdir()

    def create(self, path: Path) -> BinaryIO:
        return path.open("xb")

    def flush(self, path: Path) -> None:
        """Flush a file or a folder: return when its bytes or its entries are on disk."""
        windows = sys.platform == "win32"  # flushes only files that are open for writing, not folders
        if windows and path.is_dir():
            return
        descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file, replacing any file of that name, or a folder to an unused name, in one atomic step."""
        os.replace(old, new)  # os.rename does not replace files on Windows

    def remove_file(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, folder: Path) -> None:
        folder.rmdir()

    def list(self, folder: Path) -> list[Path]:
        return sorted(folder.iterdir())


class Unflushed(Storage):
    """A local file system that flushes nothing, for many small files that can be created again.

    As with any storage, a killed process does not leave half a file. A power failure may, during the half minute or so
    that the operating system takes to write files to disk.
    """

    def flush(self, path: Path) -> None:
        """Do nothing: flushing a small file takes longer than writing it."""


DISK = Storage()
UNFLUSHED = Unflushed()

MAX_SETTINGS_BYTES = 1 << 22  # of a manifest, a recipe or other settings


def read_small(path: Path, most: int = MAX_SETTINGS_BYTES) -> bytes:
    """Read a regular file; raise an OSError if it has more than `most` bytes or is not a regular file."""
    status = path.stat()
    # A folder is left to `read_bytes`, which raises an IsADirectoryError.
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, but should have at most {most:,}", str(path))
    return path.read_bytes()


LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # first bytes of the text file in place of a large file


def is_lfs_pointer(path: Path) -> bool:
    """Return True if a file is a Git LFS pointer: a clone without Git LFS contains it instead of a large file."""
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BEGINNINGS = {  # in bzip2, digits of pi follow the block size or, if the file is empty, digits of the square root of pi
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
}
DAMAGE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)  # bz2 raises an OSError without an errno


def decompressed(stream: BufferedReader, path: Path) -> Any:
    """Return a stream of the contents of an open file, decompressed if the file is compressed."""
    # A known extension determines the format; otherwise, the first bytes do.
    head = stream.peek(16)
    kind = path.suffix.lower()
    if kind not in OPENERS:
        kind = next((ending for ending, beginning in BEGINNINGS.items() if beginning.match(head)), "")
    return OPENERS[kind](stream) if kind else stream


def without_compression(name: str) -> str:
    """Remove the extension of a compressed file from a name: "words.csv" for "words.csv.gz"."""
    return next((name[: -len(ending)] for ending in OPENERS if name.lower().endswith(ending)), name)
