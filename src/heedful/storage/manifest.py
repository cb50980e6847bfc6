"""Manifest of a folder: sizes and checksums by which every changed byte of a file is noticed.

Neither safetensors nor JSON notices a flipped bit. So `manifest.json` holds the size and the CRC-32 of every other
file, and a CRC-32 of its own text. `storage.atomic` writes it last: a folder with a manifest is complete.
"""

import json
import re
import stat
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import InputError
from heedful.storage.disk import read_small
from heedful.wording import counted

MANIFEST = "manifest.json"
FORMAT = 1
BLOCK = 1 << 20  # bytes read at a time
PLAIN_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)  # nothing above the folder, nothing hidden

T = TypeVar("T")


class DamagedError(InputError):
    """Error raised if a file differs from what was saved. `reason` names the file without the folders above it."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}: copy it again from where it is whole, or use another checkpoint")
        self.reason = f"{path.name} {what}"


@dataclass(frozen=True)
class Entry:
    bytes: int
    crc32: str


@dataclass(frozen=True)
class Manifest:
    """Manifest of a folder: its files, by their names relative to it, and facts about the whole folder."""

    folder: Path
    facts: dict[str, Any]
    files: dict[str, Entry]

    def verified(self, name: str, most: int | None = None) -> Path:
        """Verify every byte of a file, which may have `most` bytes, and return its path.

        Raises:
            DamagedError: The manifest does not list the file, or the file is not what was saved, or is too large.
        """
        path = self.sized(name)
        if most is not None and self.files[name].bytes > most:
            raise DamagedError(path, f"has {self.files[name].bytes:,} bytes, more than the {most:,} that it may have")
        checksum = 0
        try:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    checksum = zlib.crc32(block, checksum)
        except OSError as error:
            raise _unreadable(path, error) from error
        if f"{checksum:08x}" != self.files[name].crc32:
            raise DamagedError(path, "does not hold the bytes that were saved")
        return path

    def sized(self, name: str) -> Path:
        """Verify the size of a file, and return its path; its bytes may differ."""
        path = self.folder / name
        if name not in self.files:
            raise DamagedError(path, "is not listed in the manifest")
        try:
            status = path.stat()
        except OSError as error:
            raise _unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(path, "is not a file")
        if status.st_size != self.files[name].bytes:
            raise DamagedError(path, f"has {counted(status.st_size, 'bytes')} instead of {self.files[name].bytes:,}")
        return path


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; its files are verified later, when they are read."""

    def manifest(data: bytes) -> Manifest:
        document = unseal(data)
        version = document.pop("format")
        if version != FORMAT:
            raise InputError(
                f"{folder} has format {version}, this heedful reads {FORMAT}: use the version that wrote it"
            )
        files = {name: Entry(**entry) for name, entry in document.pop("files").items()}
        # A name such as ../x would lead out of the folder.
        for name, entry in files.items():
            if not PLAIN_NAME.fullmatch(name) or type(entry.bytes) is not int or type(entry.crc32) is not str:
                raise ValueError("no entry of a file in the folder")
        return Manifest(folder, document, files)

    return parse(folder / MANIFEST, manifest)


def check(folder: Path) -> Manifest:
    manifest = check_sizes(folder)
    for name in manifest.files:
        manifest.verified(name)
    return manifest


def check_sizes(folder: Path) -> Manifest:
    """Verify the sizes of a folder's files against its manifest: quick, but misses changed bytes."""
    manifest = read_manifest(folder)
    for name in manifest.files:
        manifest.sized(name)
    return manifest


def is_as_written(folder: Path) -> bool:
    """True if a folder holds the files of its manifest in their sizes, and no others."""
    try:
        manifest = check_sizes(folder)
    except InputError:
        return False
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in files} == {MANIFEST, *manifest.files}


def manifest_text(files: Mapping[str, Entry], facts: Mapping[str, Any]) -> bytes:
    return seal({"format": FORMAT, **facts, "files": {name: vars(entry) for name, entry in files.items()}})


def json_text(document: Mapping[str, Any]) -> bytes:
    """Format a document as strict, indented JSON; floats are kept to the last bit."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def seal(document: Mapping[str, Any]) -> bytes:
    """Format a document as JSON with its own CRC-32 checksum as the last entry."""
    return json_text({**document, "crc32": f"{zlib.crc32(json_text(document)):08x}"})


def unseal(data: bytes) -> dict[str, Any]:
    """Parse a JSON document that `seal` wrote, and verify its checksum."""
    document = json.loads(data)
    if not isinstance(document, dict) or "crc32" not in document:
        raise ValueError("no checksum")
    del document["crc32"]
    # Only the bytes that `seal` wrote pass: other spaces or another order are a change, too.
    if seal(document) != data:
        raise ValueError("wrong checksum")
    return document


def parse(path: Path, reader: Callable[[bytes], T]) -> T:
    """Read a small file and parse its bytes with a given function."""
    try:
        return reader(read_small(path))
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(path, "does not hold what was saved") from error


def _unreadable(path: Path, error: OSError) -> DamagedError:
    what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    return DamagedError(path, what)
