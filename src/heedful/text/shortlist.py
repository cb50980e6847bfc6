"""Shortlist of target tokens, to which a search for a translation is restricted.

The candidates for a sentence are tokens that are always allowed, the likely translations of each of its source tokens,
and copies of the source tokens. This module does not import torch, so that CTranslate2 can search without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.pipeline import BYTES, EOS, UNK

ALWAYS, TABLE = "shortlist/always.npy", "shortlist/table.npy"
FREQUENT = 200  # number of most frequent tokens, which are always allowed


@dataclass(frozen=True)
class Shortlist:
    """Target tokens that are candidates for the translation of a sentence.

    Attributes:
        always: Ids that are candidates for every sentence.
        table: The candidates for each source token, (source vocabulary, size + 1): its copy, if the target vocabulary
            has it, and its likely translations; shorter rows are padded with <eos>.
    """

    always: NDArray[np.uint32]
    table: NDArray[np.uint32]

    @classmethod
    def build(
        cls, table: NDArray[np.int64], always: NDArray[np.int64], source: Sequence[str], target: Sequence[str]
    ) -> "Shortlist":
        """Build a shortlist.

        Args:
            table: The likely translations of each source token, (source vocabulary, size), padded with -1.
            always: Ids that are candidates for every sentence.
            source: The pieces of the source vocabulary.
            target: The pieces of the target vocabulary.
        """
        ids = {piece: i for i, piece in enumerate(target)}
        # Copies are included because names and numbers are often copied; <eos> is padding because it is always allowed.
        copies = np.array([ids.get(piece, EOS) for piece in source])
        table = np.concatenate([copies[:, None], np.where(table < 0, EOS, table)], axis=1)
        return cls(always.astype(np.uint32), table.astype(np.uint32))

    @property
    def size(self) -> int:
        """Number of likely translations of a source token."""
        return self.table.shape[1] - 1

    def candidates(self, row: Sequence[int]) -> NDArray[np.uint32]:
        """Return the candidates for a row of source token ids, sorted."""
        return np.union1d(self.always, self.table[list(row)])

    def allows(self, row: Sequence[int], output: Iterable[str]) -> bool:
        """Return True if all tokens of an output, ids as strings, are candidates for a row of source token ids."""
        unusual = {int(token) for token in output} - self._always
        return unusual.issubset(self.table[list(row)].ravel().tolist())

    @cached_property
    def _always(self) -> frozenset[int]:
        return frozenset(self.always.tolist())

    def vocabulary_map(self) -> str:
        """Return the shortlist as CTranslate2's vmap.txt: in each line, a source token, a tab, and its target tokens.

        The first line, without a source token, has the target tokens that are always allowed. Tokens are written as
        ids, because pieces may contain spaces, which separate tokens in this format.
        """
        names = ["", *map(str, range(len(self.table)))]
        rows = [self.always.tolist(), *self.table.tolist()]
        lines = [f"{name}\t{' '.join(map(str, row))}\n" for name, row in zip(names, rows, strict=True)]
        return "".join(lines)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the files that `load` reads, by name."""
        return {name: npy(array) for name, array in ((ALWAYS, self.always), (TABLE, self.table))}

    @classmethod
    def load(cls, folder: Path, sizes: tuple[int, int]) -> "Shortlist":
        """Read a shortlist from the files in a folder, and check that it fits vocabularies of these sizes."""
        try:
            always, table = (np.load(folder / name, allow_pickle=False) for name in (ALWAYS, TABLE))
            if (always.ndim, table.ndim, len(table)) == (1, 2, sizes[0]) and all(
                ids.dtype == np.uint32 and ids.size and ids.max() < sizes[1] for ids in (always, table)
            ):
                return cls(always, table)
        except (OSError, ValueError):
            pass
        raise InputError(
            f"{folder / ALWAYS} and {folder / TABLE}: not a shortlist of this model; train the model again"
        )


def always_allowed(frequency: NDArray[np.int64], pieces: Sequence[str]) -> NDArray[np.int64]:
    """Return the ids that are always allowed: frequent tokens, <unk>, <eos>, bytes, and pieces without letters.

    `frequency`, (V,), counts each target token in the training data; `pieces` are the V target pieces.
    """
    frequent = np.argsort(-frequency, kind="stable")[:FREQUENT]
    not_words = [i for i, piece in enumerate(pieces) if piece in BYTES or not any(map(str.isalpha, piece))]
    return np.union1d(frequent, [UNK, EOS, *not_words])


def npy(array: np.ndarray) -> bytes:
    """Return the bytes of an .npy file."""
    stream = BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
