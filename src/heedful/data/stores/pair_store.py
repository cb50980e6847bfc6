"""Encoded sentence pairs on disk, memory-mapped: one flat row of ids, and where each pair begins in it.

A store is a folder: `ids.bin` (source row, target row, source row, ..., each with its <eos>), `lengths.npy` (n, 2) and
`offsets.npy` (n,), kept as `heedful.data.stores.arrays` keeps its folders. A store never changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np

from heedful.data.stores.arrays import IDS, MappedFile, MappedStore, new_store, open_arrays, seal, write_ids

LENGTHS, OFFSETS = "lengths.npy", "offsets.npy"

Rows = tuple[list[int], list[int]]  # the ids of a source and of its target


@dataclass(frozen=True)
class PairStore(MappedStore):
    """Store of encoded sentence pairs, read-only: both rows of a pair end in <eos>, and none begins with <bos>."""

    ids: np.ndarray  # (all tokens,) uint16 or uint32, mapped
    lengths: np.ndarray  # (n, 2) int32, mapped: tokens of source and target
    offsets: np.ndarray  # (n,) int64, mapped: where the source row begins; the target row follows it
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[Rows], vocab_size: int) -> Self:
        """Write a store of encoded sentence pairs, which appears as a whole or not at all, and open it.

        Memory: one chunk of rows, and 8 bytes a pair for the lengths.
        """
        with new_store(folder) as writer:
            lengths = write_ids(writer, chain.from_iterable(pairs), vocab_size).reshape(-1, 2)
            if not len(lengths):
                raise ValueError("a store needs at least one pair")
            sizes = lengths.sum(axis=1, dtype=np.int64)
            arrays = {LENGTHS: lengths, OFFSETS: np.cumsum(sizes) - sizes}
            seal(writer, arrays, vocab_size, {"pairs": len(sizes), "tokens": int(sizes.sum())})
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store of encoded sentence pairs after comparing all bytes with the manifest (about 3 GB a second)."""
        arrays = open_arrays(folder, (LENGTHS, OFFSETS))
        return cls(arrays.named[IDS], arrays.named[LENGTHS], arrays.named[OFFSETS], arrays.files)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def targets(self) -> np.ndarray:
        """The target ids of all pairs, one after the other, (all target tokens,) uint16 or uint32."""
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
