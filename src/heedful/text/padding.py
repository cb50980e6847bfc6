"""Padding and truncation of rows of token ids to one length."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.pipeline import PAD

Rows = Sequence[Sequence[int]]


def pad(
    rows: Rows, length: int | None = None, side: Literal["left", "right"] = "right"
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pad rows of token ids with <pad> to one length, and return the padding mask.

    Args:
        rows: B rows of ids, of any length.
        length: The length L of every row of the result; None: the length of the longest row.
        side: The side where <pad> goes.

    Returns:
        The ids (B, L), and the padding mask (B, L): True for real ids.

    Raises:
        InputError: A row is longer than `length`; `truncate` cuts it.
    """
    longest = max(map(len, rows), default=0)
    length = longest if length is None else length
    if longest > length:
        raise InputError(f"a row of {longest} ids does not fit a length of {length}; truncate it, or pad to {longest}")
    ids = np.full((len(rows), length), PAD, dtype=np.int64)
    padding_mask = np.zeros((len(rows), length), dtype=np.bool_)
    for row, values in enumerate(rows):
        place = slice(len(values)) if side == "right" else slice(length - len(values), length)
        ids[row, place] = values
        padding_mask[row, place] = True
    return ids, padding_mask


def truncate(rows: Rows, length: int) -> list[list[int]]:
    """Truncate rows of token ids to the first `length` ids of each; an <eos> beyond them is cut off too.

    Raises:
        InputError: `length` is negative.
    """
    if length < 0:
        raise InputError(f"rows cannot be cut to {length} ids; give 0 or more")
    return [list(row[:length]) for row in rows]
