"""Stores of prepared data: folders of memory-mapped arrays, written completely or not at all, and never changed.

Such a folder contains `ids.bin`, a flat array of token ids in 16 or 32 bits, some `.npy` files, possibly `contents.bin`
with the bytes of other files, and a manifest (`heedful.storage.complete_folder`). When the folder is opened, all bytes
are verified against the manifest, at about 3 GB per second. `PairStore` contains encoded pairs, `MediaStore` the bytes
of images, audio or videos with their targets.

The files stay open during training. A memory map shows whatever another process writes to the file, and SIGBUS ends
this process if the file becomes shorter. Therefore training checks each file before and after it reads from it.
"""

import os
import weakref
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from heedful.errors import InputError, RunError
from heedful.storage.atomic import FolderWriter, atomic_folder, named_write_errors
from heedful.storage.complete_folder import BLOCK, DamagedError, Entry, read_manifest

IDS = "ids.bin"
LENGTHS, OFFSETS, BOUNDS = "lengths.npy", "offsets.npy", "bounds.npy"
CONTENTS = "contents.bin"  # the unchanged bytes of files, one after another
SMALL_VOCABULARY = 1 << 16  # ids below this number fit into 16 bits
CHUNK = 1 << 17  # number of tokens that are converted and written at a time, plus the rest of the last row
REMEDY = "run the same command again, which prepares the data again and resumes from the last checkpoint"


class MappedFile:
    """Open file of a data folder, which was verified against `entry` in the manifest. `check` detects later changes."""

    def __init__(self, path: Path, entry: Entry) -> None:
        self.path = path
        self.entry = entry
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._current_state()

    def array(self, dtype: str | None = None) -> np.ndarray:
        """Map the file into memory: a flat array of type `dtype`, or the array of an .npy file if `dtype` is None."""
        # Leaving the block closes the descriptor, so use a duplicate: `check` needs the original later.
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            if dtype is not None:
                return np.memmap(file, dtype=dtype, mode="r")
            # `np.load` maps a file only by its path, which may lead to a different file by now: read the header here.
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
            if kind.hasobject:
                raise ValueError("an array of objects")
            return np.memmap(file, dtype=kind, mode="r", offset=file.tell(), shape=shape)

    def check(self) -> None:
        """Check that the file has not changed since it was opened. If only its dates differ, it is read again."""
        try:
            state = self._current_state()
            if state == self._state:
                return
            changed = state[0] != self.entry.bytes
            # Dates can change although the bytes do not, as when permissions are changed: then the checksum decides.
            if not changed:
                content, checksum = self.array("u1"), 0
                for begin in range(0, len(content), BLOCK):
                    checksum = zlib.crc32(content[begin : begin + BLOCK].data, checksum)
                changed = f"{checksum:08x}" != self.entry.crc32
        except OSError as error:
            raise RunError(f"{self.path}: can no longer be read ({error.strerror}); {REMEDY}") from error
        if changed:
            raise RunError(f"{self.path} was changed during training; {REMEDY}")
        self._state = state

    def _current_state(self) -> tuple[int, int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns


class MappedStore(ABC):
    """Base class of stores. A store has a field for the array of each of its `FILES`, and `files`, the open files.

    A store is pickled as the path of its folder; the process that receives the path opens the store again.
    """

    FILES: ClassVar[tuple[str, ...]]
    files: tuple[MappedFile, ...]

    def __reduce__(self) -> tuple[Callable[[Path], Self], tuple[Path]]:
        return type(self).open, (self.files[0].path.parent,)

    @abstractmethod
    def __len__(self) -> int: ...

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the store in a folder, after verifying all bytes against the manifest."""
        arrays, _, files = open_arrays(folder, cls.FILES)
        return cast("Callable[..., Self]", cls)(*arrays, files)


def id_type(vocab_size: int) -> str:
    """Return numpy's name for the smallest unsigned type, of 16 or 32 bits, for token ids below `vocab_size`."""
    return "<u2" if vocab_size <= SMALL_VOCABULARY else "<u4"


@contextmanager
def new_store(folder: Path) -> Iterator[FolderWriter]:
    """Context manager that writes a data folder atomically, under a name that does not exist yet."""
    if folder.exists():
        raise RunError(f"{folder}: cannot be written, because it already exists; choose another folder")
    with named_write_errors(folder), atomic_folder(folder) as writer:
        yield writer


def write_ids(writer: FolderWriter, rows: Iterable[list[int]], vocab_size: int) -> np.ndarray:
    """Write rows of token ids one after another to `ids.bin`, a chunk at a time; return their lengths, int32 (n,)."""
    lengths = array("i")

    def encoded(chunk: list[list[int]]) -> memoryview:
        lengths.extend(map(len, chunk))
        ids = np.fromiter(chain.from_iterable(chunk), np.int64)
        # An id that is too large would wrap around in 16 bits and silently become a different token.
        if not 0 <= ids.min() <= ids.max() < vocab_size:
            raise ValueError(f"ids from {ids.min()} to {ids.max()} in a vocabulary of {vocab_size}")
        return _bytes(ids.astype(id_type(vocab_size)))

    def chunks() -> Iterator[memoryview]:
        chunk, tokens = [], 0
        for row in rows:
            chunk.append(row)
            tokens += len(row)
            if tokens >= CHUNK:
                yield encoded(chunk)
                chunk, tokens = [], 0
        if chunk:
            yield encoded(chunk)

    writer.write(IDS, chunks())
    return np.array(lengths, dtype=np.int32)


def complete_store(writer: FolderWriter, arrays: dict[str, np.ndarray], vocab_size: int, facts: dict[str, Any]) -> None:
    """Write arrays as .npy files next to `ids.bin`, then the manifest with `facts` about the whole store."""
    for name, values in arrays.items():
        # Only the header goes through `BytesIO`, so that the array has no second copy in memory.
        header = BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
        writer.write(name, [header.getvalue(), _bytes(values)])
    writer.seal({"kind": "data", "dtype": id_type(vocab_size), **facts})


def open_arrays(folder: Path, names: Sequence[str]) -> tuple[list[np.ndarray], dict[str, Any], tuple[MappedFile, ...]]:
    """Verify the files of a data folder against the manifest, and memory-map them.

    Returns the arrays in the order of `names`, the manifest's facts about the whole folder, and the open files.
    """
    try:
        manifest = read_manifest(folder)
        if manifest.files.keys() != set(names):
            raise ValueError(f"it contains {', '.join(sorted(manifest.files))}: data of a different kind")
        # Each file is opened after it is verified; `MappedFile.check` compares it with its state at that time.
        files = [MappedFile(manifest.verify(name), manifest.files[name]) for name in names]
        types = {IDS: manifest.facts["dtype"], CONTENTS: "u1"}
        arrays = [file.array(types.get(name)) for name, file in zip(names, files, strict=True)]
    except (DamagedError, OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, DamagedError) else error
        raise InputError(f"{folder}: no valid prepared data ({reason}); prepare it again") from error
    return arrays, manifest.facts, tuple(files)


def _bytes(values: np.ndarray) -> memoryview:
    """Return the bytes of an array, without a copy if it is contiguous."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


Rows = tuple[list[int], list[int]]  # the ids of a source and of its target


@dataclass(frozen=True)
class PairStore(MappedStore):
    """Read-only store of encoded sentence pairs. Both rows of a pair end in <eos>, and neither begins with <bos>."""

    FILES = (IDS, LENGTHS, OFFSETS)

    ids: np.ndarray  # (all tokens,) uint16 or uint32, mapped
    lengths: np.ndarray  # (n, 2) int32, mapped: tokens of source and target
    offsets: np.ndarray  # (n,) int64, mapped: where the source row begins; the target row follows it
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[Rows], vocab_size: int) -> Self:
        """Write a store of encoded sentence pairs atomically, and open it.

        Memory: one chunk of rows, and a few numbers per pair for lengths and offsets.
        """
        with new_store(folder) as writer:
            lengths = write_ids(writer, chain.from_iterable(pairs), vocab_size).reshape(-1, 2)
            if not len(lengths):
                raise ValueError("a store needs at least one pair")
            sizes = lengths.sum(axis=1, dtype=np.int64)
            arrays = {LENGTHS: lengths, OFFSETS: np.cumsum(sizes) - sizes}
            complete_store(writer, arrays, vocab_size, {"pairs": len(sizes), "tokens": int(sizes.sum())})
        return cls.open(folder)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def targets(self) -> np.ndarray:
        """Target ids of all pairs, one after another, (all target tokens,) uint16 or uint32."""
        # (n pairs,) -> (2 n rows,): source and target rows alternate, as in `ids`.
        sides = np.tile([False, True], len(self))
        return self.ids[np.repeat(sides, self.lengths.ravel())]

    def source(self, index: int) -> np.ndarray:
        """Return the source ids of pair `index` with <eos>, int64, shape (S,)."""
        begin = self.offsets[index]
        return self.ids[begin : begin + self.lengths[index, 0]].astype(np.int64)

    def target(self, index: int) -> np.ndarray:
        """Return the target ids of pair `index` with <eos>, int64, shape (T,)."""
        begin = self.offsets[index] + self.lengths[index, 0]
        return self.ids[begin : begin + self.lengths[index, 1]].astype(np.int64)


class MediaExample(NamedTuple):
    """An image, audio or video file: its bytes, its number of positions in the stack of layers, and its targets."""

    content: bytes
    tokens: int
    target: list[int]


@dataclass(frozen=True)
class MediaStore(MappedStore):
    """Read-only store of the bytes of images, audio files or videos, with their targets."""

    FILES = (CONTENTS, BOUNDS, IDS, LENGTHS, OFFSETS)

    contents: np.ndarray  # (all bytes,) uint8, mapped
    bounds: np.ndarray  # (n + 1,) int64, mapped: where the bytes of each file begin, and where the last ends
    ids: np.ndarray  # (all targets,) uint16 or uint32, mapped
    lengths: np.ndarray  # (n, 2) int32, mapped: positions of the input in the stack, and number of its targets
    offsets: np.ndarray  # (n,) int64, mapped: where the targets of each file begin
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, examples: Iterable[MediaExample], vocab_size: int) -> Self:
        """Write a store atomically, and open it. Only one file is in memory at a time."""
        # Contents are written first, so that only sizes and targets have to be kept in memory for all files.
        bounds, tokens, targets = array("q", [0]), array("i"), []

        def contents() -> Iterator[bytes]:
            for example in examples:
                bounds.append(bounds[-1] + len(example.content))
                tokens.append(example.tokens)
                targets.append(array("i", example.target))
                yield example.content

        with new_store(folder) as writer:
            writer.write(CONTENTS, contents())
            counts = write_ids(writer, map(list, targets), vocab_size)
            lengths = np.stack([np.array(tokens, np.int32), counts], axis=1)
            offsets = np.cumsum(counts, dtype=np.int64) - counts
            arrays = {BOUNDS: np.array(bounds, np.int64), LENGTHS: lengths, OFFSETS: offsets}
            complete_store(writer, arrays, vocab_size, {"files": len(lengths)})
        return cls.open(folder)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def targets(self) -> np.ndarray:
        """Targets of all files, one after another, (all targets,) uint16 or uint32."""
        return self.ids

    def content(self, index: int) -> bytes:
        """Return the bytes of file `index`."""
        return self.contents[self.bounds[index] : self.bounds[index + 1]].tobytes()

    def target(self, index: int) -> np.ndarray:
        """Return the targets of file `index`, int64: its class, or its text with <eos>."""
        begin = self.offsets[index]
        return self.ids[begin : begin + self.lengths[index, 1]].astype(np.int64)
