"""One text, or a pair of them, as one row of ids: <bos> A <eos>, or <bos> A <eos> B <eos> (Devlin et al. 2019, 3)."""

from collections.abc import Sequence

import numpy as np

from heedful.text.tokenizer import BOS, EOS, PAD


def sequence(first: Sequence[int], second: Sequence[int] | None = None, *, longest: int) -> list[int]:
    """The row of a text or a pair, at most `longest` ids: the longer text of a pair loses its last tokens first."""
    if second is None:
        return [BOS, *first[: longest - 2], EOS]
    room = longest - 3
    second = second[: max(room // 2, room - len(first))]
    return [BOS, *first[: room - len(second)], EOS, *second, EOS]


def is_cut(row: Sequence[int], first: Sequence[int], second: Sequence[int] | None = None) -> bool:
    """Return whether a row that `sequence` made lacks tokens of its texts."""
    return len(row) < (len(first) + 2 if second is None else len(first) + len(second) + 3)


def segments(ids: np.ndarray) -> np.ndarray:
    """Which text each token belongs to, 0 or 1, its <eos> included, of rows (B, S) that `sequence` made."""
    ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS)
    return np.where(ids == PAD, 0, ended)
