"""Store of pictures or sounds on disk: the bytes of all files, one behind the other, and the targets of each.

A store is a folder: `contents.bin` (the files as they are), `bounds.npy` (n + 1,), `ids.bin` (the targets: a class, or
the tokens of a text with <eos>), `lengths.npy` (n, 2) and `offsets.npy` (n,), kept as `heedful.data.stores.arrays`
keeps its folders. It never changes.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from heedful.data.stores.arrays import CONTENTS, IDS, MappedFile, MappedStore, new_store, open_arrays, seal, write_ids

BOUNDS, LENGTHS, OFFSETS = "bounds.npy", "lengths.npy", "offsets.npy"


class MediaExample(NamedTuple):
    """A file of a picture or sound: its bytes, its number of positions in the stack, and its targets."""

    content: bytes
    tokens: int
    target: list[int]


@dataclass(frozen=True)
class MediaStore(MappedStore):
    """Store of the bytes of pictures or sounds with their targets, read-only."""

    contents: np.ndarray  # (all bytes,) uint8, mapped
    bounds: np.ndarray  # (n + 1,) int64, mapped: where the bytes of each file begin, and where the last ends
    ids: np.ndarray  # (all targets,) uint16 or uint32, mapped
    lengths: np.ndarray  # (n, 2) int32, mapped: positions of the input in the stack, and number of its targets
    offsets: np.ndarray  # (n,) int64, mapped: where the targets of each file begin
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, examples: Iterable[MediaExample], vocab_size: int) -> Self:
        """Write a store, which appears as a whole or not at all, and open it; one file is in memory at a time."""
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
            seal(writer, arrays, vocab_size, {"files": len(lengths)})
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store after comparing all bytes with the manifest."""
        found = open_arrays(folder, (BOUNDS, LENGTHS, OFFSETS, CONTENTS))
        named = found.named
        return cls(named[CONTENTS], named[BOUNDS], named[IDS], named[LENGTHS], named[OFFSETS], found.files)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def targets(self) -> np.ndarray:
        """The targets of all files, one after the other, (all targets,) uint16 or uint32."""
        return self.ids

    def content(self, index: int) -> bytes:
        """The bytes of file `index`."""
        return self.contents[self.bounds[index] : self.bounds[index + 1]].tobytes()

    def target(self, index: int) -> np.ndarray:
        """The targets of file `index`, int64: its class, or its text with <eos>."""
        begin = self.offsets[index]
        return self.ids[begin : begin + self.lengths[index, 1]].astype(np.int64)
