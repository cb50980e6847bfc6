"""Overlapping windows of a text that is longer than a model reads, as in BERT's code for SQuAD (Devlin et al. 2019).

All windows have one length, and neighbours share half of it or more: in one of them a token has at least a quarter of a
window on either side, unless the text ends before.
"""

from itertools import pairwise
from typing import NamedTuple


class Window(NamedTuple):
    """Window of a text: tokens `begin` to `end` - 1, from 0; tokens `first` to `stop` - 1 have most context here."""

    begin: int
    end: int
    first: int
    stop: int


def windows(count: int, room: int) -> list[Window]:
    """Cut a text of `count` tokens into overlapping windows of at most `room` tokens, in order.

    Tokens `first` to `stop` - 1 of all windows together are the text, each token once.

    Args:
        count: Tokens of the text; an empty one has an empty window.
        room: Tokens of a window, 1 or more.
    """
    last = max(count - room, 0)
    begins = [*range(0, last, room - room // 2), last]
    middles = [(begin + before + room) // 2 for before, begin in pairwise(begins)]  # of the overlaps of two neighbours
    return [
        Window(begin, min(begin + room, count), first, stop)
        for begin, (first, stop) in zip(begins, pairwise([0, *middles, count]), strict=True)
    ]
