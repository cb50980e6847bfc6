"""Manifests, which show whether a folder is complete: they list the size and checksum of every file.

Neither safetensors nor JSON detects a flipped bit. So `manifest.json` contains the size and the CRC-32 of every file
that was written with it, and a CRC-32 of the manifest's entries. `storage.atomic` writes it last, so a folder with a
manifest was written completely. `is_complete` and `is_intact` compare the manifest with the files that are there now.
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
from heedful.storage.disk import is_lfs_pointer, read_small
from heedful.wording import counted

MANIFEST = "manifest.json"
ENGINES = ".engines"  # folder with a model in inference engine formats, created when the model is first used
CARD = "README.md"  # the model card, which the manifest does not list, so that people can edit it
FORMAT = 1  # version of the manifest's format
BLOCK = 1 << 20  # bytes read at a time
PLAIN_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)  # path inside the folder, without hidden parts

T = TypeVar("T")


class DamagedError(InputError):
    """Error raised if a file differs from what was saved.

    Attributes:
        reason: The problem, with the name of the file but not its parent folders.
    """

    def __init__(
        self, path: Path, what: str, remedy: str = "restore it from an intact copy, or use another checkpoint"
    ) -> None:
        super().__init__(f"{path} {what}: {remedy}")
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

    def verify(self, name: str, max_bytes: int | None = None) -> Path:
        """Verify every byte of a file, and return its path.

        Raises:
            DamagedError: The manifest does not list the file, its bytes are not those that were saved, or it has more
                than `max_bytes` bytes.
        """
        path, entry = self.verify_size(name), self.files[name]
        if max_bytes is not None and entry.bytes > max_bytes:
            raise DamagedError(path, f"has {entry.bytes:,} bytes, more than the limit of {max_bytes:,}")
        checksum = 0
        try:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    checksum = zlib.crc32(block, checksum)
        except OSError as error:
            raise _unreadable(path, error) from error
        if f"{checksum:08x}" != entry.crc32:
            raise DamagedError(path, "does not match its checksum")
        return path

    def verify_size(self, name: str) -> Path:
        """Verify only the size of a file, not its bytes, and return its path."""
        path = self.folder / name
        if name not in self.files:
            raise DamagedError(path, "is not listed in the manifest")
        try:
            status = path.stat()
        except OSError as error:
            raise _unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(path, "is not a file")
        if status.st_size != self.files[name].bytes and is_lfs_pointer(path):
            raise DamagedError(
                path, "is a Git LFS pointer, not the file itself", f"run `git lfs pull` in {self.folder}"
            )
        if status.st_size != self.files[name].bytes:
            raise DamagedError(path, f"has {counted(status.st_size, 'bytes')} instead of {self.files[name].bytes:,}")
        return path


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; its files are verified later, when they are read."""

    def parse_manifest(data: bytes) -> Manifest:
        document = unseal(data)
        version = document.pop("format")
        if version != FORMAT:
            raise InputError(
                f"{folder} has format {version}, but this version of heedful reads {FORMAT}: "
                "use the version that wrote it"
            )
        files = {name: Entry(**entry) for name, entry in document.pop("files").items()}
        # A name such as ../x would lead outside the folder.
        for name, entry in files.items():
            if not PLAIN_NAME.fullmatch(name) or type(entry.bytes) is not int or type(entry.crc32) is not str:
                raise ValueError("not an entry for a file in the folder")
        return Manifest(folder, document, files)

    return parse_file(folder / MANIFEST, parse_manifest)


def verify_folder(folder: Path) -> Manifest:
    """Verify every byte of a folder's files against its manifest."""
    manifest = verify_sizes(folder)
    for name in manifest.files:
        manifest.verify(name)
    return manifest


def verify_sizes(folder: Path) -> Manifest:
    """Verify the sizes of a folder's files against its manifest: quick, but misses changed bytes."""
    manifest = read_manifest(folder)
    for name in manifest.files:
        manifest.verify_size(name)
    return manifest


def is_intact(folder: Path) -> bool:
    """Return True if a folder contains every byte that was saved."""
    try:
        verify_folder(folder)
    except InputError:
        return False
    return True


def is_complete(folder: Path, *, allow_others: bool = True) -> bool:
    """Return True if a folder has all files in its manifest, with the right sizes, and no others unless `allow_others`.

    The model card and the files in `.engines` do not count.
    """
    try:
        manifest = verify_sizes(folder)
    except InputError:
        return False
    if allow_others:
        return True
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.as_posix() for path in files if path.parts[0] != ENGINES} - {CARD} == {MANIFEST, *manifest.files}


def manifest_bytes(files: Mapping[str, Entry], facts: Mapping[str, Any]) -> bytes:
    # Sorted, because listings differ between file systems, and a manifest's bytes identify the version of a model.
    return seal({"format": FORMAT, **facts, "files": {name: vars(files[name]) for name in sorted(files)}})


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Format a document as strict, indented JSON; floats are exact to the last bit."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def seal(document: Mapping[str, Any]) -> bytes:
    """Format a document as JSON whose last entry is the CRC-32 checksum of the others."""
    return json_bytes({**document, "crc32": f"{zlib.crc32(json_bytes(document)):08x}"})


def unseal(data: bytes) -> dict[str, Any]:
    """Parse a JSON document that `seal` wrote, and verify its checksum."""
    document = json.loads(data)
    if not isinstance(document, dict) or "crc32" not in document:
        raise ValueError("no checksum")
    del document["crc32"]
    # Only the bytes that `seal` wrote pass: different spacing or order is also a change.
    if seal(document) != data:
        raise ValueError("wrong checksum")
    return document


def parse_file(path: Path, parse: Callable[[bytes], T]) -> T:
    """Read a small file and parse its bytes; errors in either step become a DamagedError."""
    try:
        return parse(read_small(path))
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(path, "does not match its checksum") from error


def _unreadable(path: Path, error: OSError) -> DamagedError:
    what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    return DamagedError(path, what)
