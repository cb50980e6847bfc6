"""Input rows of BERT: a text <bos> A <eos>, or a pair <bos> A <eos> B <eos> (Devlin et al. 2019, section 3)."""

from collections.abc import Sequence

import numpy as np

from heedful.text.tokenizer import BOS, EOS, PAD


def sequence(first: Sequence[int], second: Sequence[int] | None = None, *, longest: int) -> list[int]:
    """Join the ids of a text, <bos> A <eos>, or of a pair, <bos> A <eos> B <eos>, into a row of at most `longest` ids.

    The longer text of a pair loses its last tokens first.
    """
    if second is None:
        return [BOS, *first[: longest - 2], EOS]
    room = longest - 3
    second = second[: max(room // 2, room - len(first))]
    return [BOS, *first[: room - len(second)], EOS, *second, EOS]


def is_cut(row: Sequence[int], first: Sequence[int], second: Sequence[int] | None = None) -> bool:
    """True if a row that `sequence` made lacks tokens of its texts, because they were too long."""
    return len(row) < (len(first) + 2 if second is None else len(first) + len(second) + 3)


def segments(ids: np.ndarray) -> np.ndarray:
    """Segment ids of rows (B, S) that `sequence` made: 0 for the first text and its <eos>, 1 for the second."""
    ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS)
    return np.where(ids == PAD, 0, ended)
