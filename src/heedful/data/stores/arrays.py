"""Folders of memory-mapped arrays: written as a whole or not at all, and checked byte for byte when they are opened.

Such a folder holds `ids.bin`, a flat row of token ids in 16 or 32 bits, some `.npy` files, perhaps `contents.bin` with
the bytes of other files, and their manifest, see `heedful.storage.manifest`. It never changes.

The files stay open while a training reads them. A memory map shows whatever another process writes into the file, and
ends the process with SIGBUS where the file has become shorter. So the state of each file is compared before and after
it is read.
"""

import os
import weakref
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from heedful.errors import InputError, RunError
from heedful.storage.atomic import FolderWriter, atomic_folder, named_write_errors
from heedful.storage.manifest import BLOCK, DamagedError, Entry, read_manifest

IDS = "ids.bin"
CONTENTS = "contents.bin"  # files as they are, one behind the other
SMALL_VOCABULARY = 1 << 16  # ids below it fit into 16 bits
CHUNK = 1 << 17  # tokens that are converted and written at a time, plus the rest of the last row
REMEDY = "the same command prepares the data again, and goes on from the last checkpoint"


class MappedFile:
    """Open file of a data folder whose bytes must stay those of its manifest."""

    def __init__(self, path: Path, entry: Entry) -> None:
        self.path = path
        self.entry = entry
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._found()

    def array(self, dtype: str | None = None) -> np.ndarray:
        """Map the array of the file into memory: an .npy file, or a flat row of a given type."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            if dtype is not None:
                return np.memmap(file, dtype=dtype, mode="r")
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
            if kind.hasobject:
                raise ValueError("an array of objects")
            return np.memmap(file, dtype=kind, mode="r", offset=file.tell(), shape=shape)

    def check(self) -> None:
        """Check that the file has not changed since it was opened; it is read again only if its dates differ."""
        try:
            found = self._found()
            if found == self._state:
                return
            changed = found[0] != self.entry.bytes or self._checksum() != self.entry.crc32
        except OSError as error:
            raise RunError(f"{self.path} cannot be read any more ({error.strerror}): {REMEDY}") from error
        if changed:
            raise RunError(f"{self.path} was changed while training reads it: {REMEDY}")
        self._state = found

    def _found(self) -> tuple[int, int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _checksum(self) -> str:
        content, checksum = self.array("u1"), 0
        for begin in range(0, len(content), BLOCK):
            checksum = zlib.crc32(content[begin : begin + BLOCK].data, checksum)
        return f"{checksum:08x}"


@dataclass(frozen=True)
class Arrays:
    """Memory-mapped arrays of an opened data folder, with their files and the facts of its manifest."""

    named: dict[str, np.ndarray]  # memory-mapped arrays by file name
    facts: dict[str, Any]  # about the whole folder, such as the type of the ids
    files: tuple[MappedFile, ...]


class MappedStore(ABC):
    """Base class of what `open_arrays` opened: it is sent to another process as its folder, and opened there again."""

    files: tuple[MappedFile, ...]

    def __reduce__(self) -> tuple[Callable[[Path], Self], tuple[Path]]:
        return type(self).open, (self.files[0].path.parent,)

    @classmethod
    @abstractmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder after comparing all bytes with the manifest."""


def id_type(vocab_size: int) -> str:
    """Return numpy's name of the smallest unsigned integer type for token ids below `vocab_size`."""
    return "<u2" if vocab_size <= SMALL_VOCABULARY else "<u4"


@contextmanager
def new_store(folder: Path) -> Iterator[FolderWriter]:
    """Write a data folder, which appears as a whole or not at all; see `heedful.storage.atomic_folder`."""
    if folder.exists():
        raise RunError(f"{folder}: cannot be written, as something is there already; name another folder")
    with named_write_errors(folder), atomic_folder(folder) as writer:
        yield writer


def write_ids(writer: FolderWriter, rows: Iterable[list[int]], vocab_size: int) -> np.ndarray:
    """Write rows of token ids one after another into `ids.bin`, a chunk at a time; return their lengths, int32 (n,)."""
    lengths = array("i")

    def encoded() -> Iterator[memoryview]:
        for chunk in _chunks(rows):
            lengths.extend(map(len, chunk))
            ids = np.fromiter(chain.from_iterable(chunk), np.int64)
            if not 0 <= ids.min() <= ids.max() < vocab_size:
                raise ValueError(f"ids from {ids.min()} to {ids.max()} in a vocabulary of {vocab_size}")
            yield _bytes(ids.astype(id_type(vocab_size)))

    writer.write(IDS, encoded())
    return np.array(lengths, dtype=np.int32)


def seal(writer: FolderWriter, arrays: dict[str, np.ndarray], vocab_size: int, facts: dict[str, Any]) -> None:
    """Complete a data folder: write arrays as .npy files beside `ids.bin`, and the manifest with the given facts."""
    for name, values in arrays.items():
        header = BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
        writer.write(name, [header.getvalue(), _bytes(values)])
    writer.seal({"kind": "data", "dtype": id_type(vocab_size), **facts})


def open_arrays(folder: Path, names: Collection[str]) -> Arrays:
    """Memory-map `ids.bin` and further named files of a data folder, all bytes of which are compared with the manifest.

    That takes a second for 3 GB.
    """
    try:
        manifest = read_manifest(folder)
        if manifest.files.keys() != {IDS, *names}:
            raise ValueError(f"it holds {', '.join(sorted(manifest.files))}: data of another kind")
        files = {name: MappedFile(manifest.verified(name), manifest.files[name]) for name in (*names, IDS)}
        types = {IDS: manifest.facts["dtype"], CONTENTS: "u1"}
        named = {name: files[name].array(types.get(name)) for name in files}
    except DamagedError as error:
        raise _unsound(folder, error.reason) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unsound(folder, error) from error
    return Arrays(named, manifest.facts, tuple(files.values()))


def _unsound(folder: Path, reason: object) -> InputError:
    return InputError(f"{folder}: no sound prepared data ({reason}); prepare it again")


def _bytes(values: np.ndarray) -> memoryview:
    """The bytes of an array in memory, without a copy if it is contiguous."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


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
