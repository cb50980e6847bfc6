"""Encoded sentence pairs on disk, memory-mapped: one flat row of ids, and where each pair begins in it.

A store is a folder: `ids.bin` (source row, target row, source row, ..., each with its <eos>), `lengths.npy` (n, 2),
`offsets.npy` (n,) and `manifest.json` with the SHA-256 of each of them and of itself. A store never changes.
"""

import hashlib
import json
import shutil
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np

from heedful.errors import InputError, RunError

FORMAT = 1
MANIFEST = "manifest.json"
SMALL_VOCABULARY = 1 << 16  # ids below it fit into 16 bits
CHUNK = 4096  # rows converted and written at a time
FILES = ("ids.bin", "lengths.npy", "offsets.npy")

Rows = tuple[list[int], list[int]]  # the ids of a source and of its target


@dataclass(frozen=True)
class PairStore:
    """Read-only pairs of id rows; both rows of a pair end in <eos>, and none begins with <bos>."""

    ids: np.ndarray  # (all tokens,) uint16 or uint32, mapped
    lengths: np.ndarray  # (n, 2) int32, mapped: tokens of source and target
    offsets: np.ndarray  # (n,) int64, mapped: where the source row begins; the target row follows it
    digest: str  # SHA-256 of the content: equal stores have equal digests

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[Rows], vocab_size: int) -> Self:
        """Write a store, which appears as a whole or not at all, and open it.

        Memory: one chunk of rows, and 8 bytes a pair for the lengths.

        Args:
            folder: Where the store goes; nothing may be there.
            pairs: At least one pair of id rows of source and target, each with its final <eos>.
            vocab_size: All ids are below it; it decides between 16 and 32 bits.

        Raises:
            RunError: The folder cannot be written.
        """
        dtype = "<u2" if vocab_size <= SMALL_VOCABULARY else "<u4"
        with published(folder) as temporary:
            lengths = _write_ids(temporary / "ids.bin", pairs, dtype, vocab_size)
            sizes = lengths.sum(axis=1, dtype=np.int64)
            np.save(temporary / "lengths.npy", lengths)
            np.save(temporary / "offsets.npy", np.cumsum(sizes) - sizes)
            manifest = {"format": FORMAT, "dtype": dtype, "pairs": len(sizes), "tokens": int(sizes.sum())}
            manifest["files"] = {name: file_digest(temporary / name) for name in FILES}
            manifest["digest"] = _digest(manifest)
            (temporary / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store after comparing all of its bytes with the manifest (about 2 GB a second).

        Raises:
            InputError: There is no store, it is of another format, or a file is missing, cut short or changed.
        """
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            digest = manifest.pop("digest")
            if digest != _digest(manifest) or manifest["format"] != FORMAT:
                raise ValueError(f"{MANIFEST} was changed or is of another version")
            for name, expected in manifest["files"].items():
                if file_digest(folder / name) != expected:
                    raise ValueError(f"{name} is not the file that was written")
            return cls(
                ids=np.memmap(folder / "ids.bin", dtype=manifest["dtype"], mode="r"),
                lengths=np.load(folder / "lengths.npy", mmap_mode="r", allow_pickle=False),
                offsets=np.load(folder / "offsets.npy", mmap_mode="r", allow_pickle=False),
                digest=digest,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{folder}: no sound prepared data ({error}); prepare it again") from error

    def __len__(self) -> int:
        return len(self.offsets)

    def source(self, index: int) -> np.ndarray:
        """Return the source ids of pair `index` with <eos>, int64, shape (S,)."""
        begin = self.offsets[index]
        return self.ids[begin : begin + self.lengths[index, 0]].astype(np.int64)

    def target(self, index: int) -> np.ndarray:
        """Return the target ids of pair `index` with <eos>, int64, shape (T,)."""
        begin = self.offsets[index] + self.lengths[index, 0]
        return self.ids[begin : begin + self.lengths[index, 1]].astype(np.int64)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def published(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes `folder` by one rename when the block ends without an error.

    What killed processes left behind is removed first. Nothing is forced to the disk: should power fail, the checksums
    tell, and data can be prepared again.

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


def _write_ids(path: Path, pairs: Iterable[Rows], dtype: str, vocab_size: int) -> np.ndarray:
    """Write the rows one behind the other and return their lengths, (n, 2) int32."""
    lengths = array("i")
    rows = chain.from_iterable(pairs)
    with path.open("wb") as file:
        while chunk := list(islice(rows, CHUNK)):
            lengths.extend(map(len, chunk))
            ids = np.fromiter(chain.from_iterable(chunk), np.int64)
            if not 0 <= ids.min() <= ids.max() < vocab_size:
                raise ValueError(f"ids from {ids.min()} to {ids.max()} in a vocabulary of {vocab_size}")
            ids.astype(dtype).tofile(file)
    if not lengths:
        raise ValueError("a store needs at least one pair")
    return np.frombuffer(lengths, dtype=np.int32).reshape(-1, 2)
