"""Folders of memory-mapped arrays: published as a whole or not at all, and checked byte for byte when they are opened.

Such a folder holds `ids.bin`, a flat row of token ids in 16 or 32 bits, some `.npy` files, and `manifest.json` with the
SHA-256 of each of them and of itself. It never changes.
"""

import hashlib
import json
import shutil
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from heedful.errors import InputError, RunError

FORMAT = 1
IDS = "ids.bin"
MANIFEST = "manifest.json"
SMALL_VOCABULARY = 1 << 16  # ids below it fit into 16 bits
CHUNK = 1 << 17  # tokens that are converted and written at a time, plus the rest of the last row


@dataclass(frozen=True)
class Arrays:
    """Memory-mapped arrays of an opened data folder, with the facts of its manifest and its digest."""

    named: dict[str, np.ndarray]  # memory-mapped arrays by file name
    facts: dict[str, Any]  # the other entries of the manifest
    digest: str  # SHA-256 of the content: equal folders have equal digests


def id_type(vocab_size: int) -> str:
    """Return numpy's name of the smallest unsigned integer type for token ids below `vocab_size`."""
    return "<u2" if vocab_size <= SMALL_VOCABULARY else "<u4"


def write_ids(folder: Path, rows: Iterable[list[int]], vocab_size: int) -> np.ndarray:
    """Write rows of token ids one behind the other into the file `ids.bin`, with one chunk of rows in memory at a time.

    Returns:
        The length of each row, int32, shape (n,).

    Raises:
        ValueError: An id is not below `vocab_size`.
    """
    lengths = array("i")
    with (folder / IDS).open("wb") as file:
        for chunk in _chunks(rows):
            lengths.extend(map(len, chunk))
            ids = np.fromiter(chain.from_iterable(chunk), np.int64)
            if not 0 <= ids.min() <= ids.max() < vocab_size:
                raise ValueError(f"ids from {ids.min()} to {ids.max()} in a vocabulary of {vocab_size}")
            ids.astype(id_type(vocab_size)).tofile(file)
    return np.array(lengths, dtype=np.int32)


def seal(folder: Path, arrays: dict[str, np.ndarray], vocab_size: int, facts: dict[str, Any]) -> None:
    """Complete a data folder: write arrays beside `ids.bin`, and manifest.json with checksums and the given facts."""
    for name, values in arrays.items():
        np.save(folder / name, values)
    manifest = {"format": FORMAT, "dtype": id_type(vocab_size), **facts}
    manifest["files"] = {name: file_digest(folder / name) for name in (IDS, *arrays)}
    manifest["digest"] = _digest(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def open_arrays(folder: Path, names: Collection[str]) -> Arrays:
    """Memory-map `ids.bin` and the named files of a data folder after comparing all bytes with the manifest (2 GB/s).

    Raises:
        InputError: The folder holds other files, is of another format, or a file is missing, cut or changed.
    """
    try:
        facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        digest = facts.pop("digest")
        if digest != _digest(facts) or facts["format"] != FORMAT:
            raise ValueError(f"{MANIFEST} was changed or is of another version")
        files = facts["files"]
        if set(files) != {IDS, *names}:
            raise ValueError(f"it holds {', '.join(sorted(files))}: data of another kind")
        for name, expected in files.items():
            if file_digest(folder / name) != expected:
                raise ValueError(f"{name} is not the file that was written")
        named = {name: np.load(folder / name, mmap_mode="r", allow_pickle=False) for name in names}
        named[IDS] = np.memmap(folder / IDS, dtype=facts["dtype"], mode="r")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder}: no sound prepared data ({error}); prepare it again") from error
    return Arrays(named, facts, digest)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def published(folder: Path) -> Iterator[Path]:
    """Context manager: gives a temporary folder that is renamed to `folder` when the block ends without an error.

    Temporary folders of killed processes are removed first. Nothing is forced to the disk: should power fail, the
    checksums tell, and data can be prepared again.

    Raises:
        RunError: The folder cannot be written, for example because the disk is full or something else is there.
    """
    prefix = f".{folder.name}.tmp-"
    temporary = folder.with_name(prefix + uuid4().hex)
    try:
        for stale in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(stale)
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{folder}: cannot be written ({reason}); make room for it or name another folder") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _chunks(rows: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    """Yield the rows in chunks of about `CHUNK` tokens."""
    chunk, tokens = [], 0
    for row in rows:
        chunk.append(row)
        tokens += len(row)
        if tokens >= CHUNK:
            yield chunk
            chunk, tokens = [], 0
    if chunk:
        yield chunk
