"""Compressed files: gzip, bzip2 and xz, recognised by their first bytes or by the ending of their name."""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

OPENERS: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BEGINNINGS = {  # bzip2: the digits of pi, or in an empty file of its root, follow the size of a block
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
}
DAMAGE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)  # bz2 raises an OSError without a number


def decompressed(stream: BufferedReader, path: Path) -> Any:
    """Open a file that is open for reading bytes: a stream of its contents, whether or not they are compressed."""
    # The ending decides; without one that is known, the first bytes do.
    head = stream.peek(16)
    kind = path.suffix.lower()
    if kind not in OPENERS:
        kind = next((ending for ending, beginning in BEGINNINGS.items() if beginning.match(head)), "")
    return OPENERS[kind](stream) if kind else stream


def without_compression(name: str) -> str:
    """Remove the ending of a compressed file from a name: "words.csv" for "words.csv.gz"."""
    return next((name[: -len(ending)] for ending in OPENERS if name.lower().endswith(ending)), name)
