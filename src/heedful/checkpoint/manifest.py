"""The list of a folder's files by which no changed byte stays unnoticed.

Neither safetensors nor JSON notices a flipped bit. So `manifest.json` holds the size and the CRC-32 of every other
file, and a CRC-32 of its own text.
"""

import json
import stat
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import InputError
from heedful.wording import counted

MANIFEST = "manifest.json"
FORMAT = 1
BLOCK = 1 << 20  # bytes read at a time

T = TypeVar("T")


class DamagedError(InputError):
    """What is on the disk is not what was saved. `reason` names the file without the folders above it."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}: copy it again from where it is whole, or use another checkpoint")
        self.reason = f"{path.name} {what}"


@dataclass(frozen=True)
class Entry:
    """What the manifest says about one file."""

    bytes: int
    crc32: str


@dataclass(frozen=True)
class Manifest:
    """A folder's files, by their names relative to it, and facts about the whole."""

    folder: Path
    facts: dict[str, Any]
    files: dict[str, Entry]

    def path(self, name: str) -> Path:
        """Compare every byte of a file with the manifest, and return where the file is.

        Raises:
            DamagedError: The manifest does not list the file, or it is not what was saved.
        """
        if name not in self.files:
            raise DamagedError(self.folder / name, "is not listed in the manifest")
        path, entry = self.folder / name, self.files[name]
        _compare_size(path, entry)
        if _checksum(path) != entry.crc32:
            raise DamagedError(path, "does not hold the bytes that were saved")
        return path


def read_manifest(folder: Path) -> Manifest:
    """Read what a folder should hold; its other files are looked at when they are asked for.

    Raises:
        DamagedError: The manifest is missing or is not what was saved.
        InputError: Another version of heedful wrote the folder.
    """
    return parse(folder / MANIFEST, lambda data: _manifest(folder, unseal(data)))


def check(folder: Path) -> Manifest:
    """Read every byte of a folder and compare it with the manifest.

    Raises:
        DamagedError: A file is missing or is not what was saved.
        InputError: Another version of heedful wrote the folder.
    """
    manifest = check_sizes(folder)
    for name in manifest.files:
        manifest.path(name)
    return manifest


def check_sizes(folder: Path) -> Manifest:
    """Compare sizes only: quick, and finds all but changed bytes.

    Raises:
        DamagedError: A file is missing or its size is not what was saved.
        InputError: Another version of heedful wrote the folder.
    """
    manifest = read_manifest(folder)
    for name, entry in manifest.files.items():
        _compare_size(folder / name, entry)
    return manifest


def manifest_text(files: Mapping[str, Entry], facts: Mapping[str, Any]) -> bytes:
    """The bytes of `manifest.json`."""
    return seal({"format": FORMAT, **facts, "files": {name: vars(entry) for name, entry in files.items()}})


def _manifest(folder: Path, document: dict[str, Any]) -> Manifest:
    version = document.pop("format")
    if version != FORMAT:
        raise InputError(f"{folder} has format {version}, this heedful reads {FORMAT}: use the version that wrote it")
    files = {name: Entry(**entry) for name, entry in document.pop("files").items()}
    return Manifest(folder, document, files)


def json_text(document: Mapping[str, Any]) -> bytes:
    """Strict JSON, laid out for people; floats come back to the last bit."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def seal(document: Mapping[str, Any]) -> bytes:
    """JSON with its own checksum as the last entry."""
    return json_text({**document, "crc32": f"{zlib.crc32(json_text(document)):08x}"})


def unseal(data: bytes) -> dict[str, Any]:
    """Read what `seal` wrote.

    Raises:
        ValueError: Any byte differs.
    """
    document = json.loads(data)
    if not isinstance(document, dict) or "crc32" not in document:
        raise ValueError("no checksum")
    del document["crc32"]
    if seal(document) != data:
        raise ValueError("wrong checksum")
    return document


def parse(path: Path, reader: Callable[[bytes], T]) -> T:
    """Read a whole small file and make something of it.

    Raises:
        DamagedError: The file cannot be read, or the reader could make nothing of it.
    """
    try:
        return reader(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(path, "does not hold what was saved") from error


def _compare_size(path: Path, entry: Entry) -> None:
    size = _size(path)
    if size != entry.bytes:
        raise DamagedError(path, f"has {counted(size, 'bytes')} instead of {entry.bytes:,}")


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(path, "is not a file")
    return status.st_size


def _checksum(path: Path) -> str:
    checksum = 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                checksum = zlib.crc32(block, checksum)
    except OSError as error:
        raise _unreadable(path, error) from error
    return f"{checksum:08x}"


def _unreadable(path: Path, error: OSError) -> DamagedError:
    what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    return DamagedError(path, what)
