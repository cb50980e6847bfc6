"""Token stream for language models: documents stored as one array of ids, and the windows that training reads.

A stream is a folder as in `heedful.data.stores`: `ids.bin` (the tokens of each document and its <eos>) and
`offsets.npy` (where each document begins, then the number of tokens).

Position -1 of a stream is an <eos> that is not stored: every document, including the first, comes after an <eos>, from
which its first token is predicted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from heedful.data.stores import IDS, MappedFile, MappedStore, complete_store, new_store, open_arrays, write_ids
from heedful.random_numbers import PHASE, WINDOWS, draw, shuffled
from heedful.text.tokenizer import EOS, PAD

OFFSETS = "offsets.npy"

Encoded = tuple[list[int], int]  # the ids of a document without <eos>, and the size of its text in UTF-8 bytes


@dataclass(frozen=True)
class TokenStream(MappedStore):
    """Read-only store of the token ids of documents as one stream. Each document ends in <eos>."""

    ids: np.ndarray  # (n,) uint16 or uint32, mapped
    offsets: np.ndarray  # (documents + 1,) int64, mapped: where each document begins; the last entry is n
    bytes: int  # size of the text in UTF-8, for perplexity per byte
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, documents: Iterable[Encoded], vocab_size: int) -> Self:
        """Write a token stream atomically, and open it.

        Memory: a chunk of documents, and a few numbers per document.
        """
        size = 0

        def rows() -> Iterator[list[int]]:
            nonlocal size
            for ids, length in documents:
                size += length
                yield [*ids, EOS]

        with new_store(folder) as writer:
            lengths = write_ids(writer, rows(), vocab_size)
            if not len(lengths):
                raise ValueError("a stream needs at least one document")
            offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            facts = {"documents": len(lengths), "tokens": int(offsets[-1]), "bytes": size}
            complete_store(writer, {OFFSETS: offsets}, vocab_size, facts)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        (ids, offsets), facts, files = open_arrays(folder, (IDS, OFFSETS))
        return cls(ids, offsets, facts["bytes"], files)

    def __len__(self) -> int:
        """Return the number of tokens in the stream, <eos> included."""
        return len(self.ids)


@dataclass(frozen=True)
class WindowPlan:
    """Plan of the windows of a token stream that form each batch: a pure function of the fields and the epoch.

    A window that starts at s predicts the `length` tokens from s + 1 to s + length, each from the tokens before it in
    the window. Adjacent windows share one token, the last target of one and the first input of the next, so that no
    token is predicted twice.
    """

    stream: TokenStream
    length: int  # number of tokens that a window reads, and also the number that it predicts
    batch_tokens: int  # maximum batch size, number of windows x length; a longer window is a batch by itself
    seed: int

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of a training epoch in order, each as the start positions of its windows, int64, (B,).

        Windows begin at a random phase, so that each epoch splits the stream at other positions. All windows are full:
        at either end of the stream, up to `length` - 1 tokens, depending on the phase, are not predicted. Only a stream
        that is shorter than a window becomes a single, padded window.
        """
        slack = len(self.stream) - self.length
        if slack < 0:
            return self.cover()
        # The phase is at most `slack`, so that at least one window fits.
        phase = int(draw(1, self.seed, PHASE, epoch)[0]) % min(self.length, slack + 1)
        count = (len(self.stream) - phase) // self.length
        # The token before the phase is the first input, from which the first token is predicted; at -1 it is an <eos>.
        starts = phase - 1 + self.length * np.arange(count)
        return self._batches(shuffled(starts, self.seed, WINDOWS, epoch))

    def cover(self) -> list[np.ndarray]:
        """Return the batches for validation: windows in order, which together predict each token of the stream once.

        Batches are as in `epoch`. The last window is padded if the stream ends before it does.
        """
        return self._batches(np.arange(-1, len(self.stream) - 1, self.length))

    def cells(self, starts: np.ndarray) -> int:
        """Return the size of a batch: its number of windows x the number of tokens that each reads."""
        return len(starts) * self.length

    def _batches(self, starts: np.ndarray) -> list[np.ndarray]:
        rows = max(1, self.batch_tokens // self.length)
        return [starts[begin : begin + rows] for begin in range(0, len(starts), rows)]


def windows(stream: TokenStream, starts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the token ids of windows of a stream, and the document number of each token, both int64, (B, length + 1).

    An <eos> belongs to the document that follows it, whose first token is predicted from it. If attention does not
    cross documents, that prediction therefore has an input, but does not see the previous document. Positions after the
    end of the stream are <pad>, which belongs to a separate document. `starts` is a batch of a `WindowPlan`, shape
    (B,), and `length` is the plan's.
    """
    # (B, length + 1): the inputs of a window, and one more token, because targets are the inputs shifted by one.
    positions = starts[:, None] + np.arange(length + 1)
    inside = (positions >= 0) & (positions < len(stream))
    ids = np.where(positions < 0, EOS, PAD)
    ids[inside] = stream.ids[positions[inside]]
    # Look up the next position, so that an <eos> counts as part of the document that follows it.
    documents = np.searchsorted(stream.offsets, positions + 1, side="right") - 1
    documents[positions >= len(stream)] = len(stream.offsets)
    return ids, documents
