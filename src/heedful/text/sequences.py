"""Rows of token ids as models read them: padded, in pairs, or as overlapping windows (Devlin et al. 2019)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.tokenizer import BOS, EOS, PAD, Place, Tokenizer

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
    """Truncate rows of token ids to the first `length` ids of each; an <eos> beyond them is cut off too."""
    if length < 0:
        raise InputError(f"rows cannot be cut to {length} ids; give 0 or more")
    return [list(row[:length]) for row in rows]


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


class Window(NamedTuple):
    """Window of a text: tokens `begin` to `end` - 1, from 0; tokens `first` to `stop` - 1 have most context here."""

    begin: int
    end: int
    first: int
    stop: int


def windows(count: int, room: int) -> list[Window]:
    """Cut a text of `count` tokens into overlapping windows of at most `room` tokens, in order.

    Tokens `first` to `stop` - 1 of all windows together are the text, each token once.
    """
    last = max(count - room, 0)
    begins = [*range(0, last, room - room // 2), last]
    middles = [(begin + before + room) // 2 for before, begin in pairwise(begins)]  # of the overlaps of two neighbours
    return [
        Window(begin, min(begin + room, count), first, stop)
        for begin, (first, stop) in zip(begins, pairwise([0, *middles, count]), strict=True)
    ]


@dataclass(frozen=True)
class Context:
    """An encoded text that may answer questions: its token ids, and the characters that each token stands for."""

    text: str
    ids: list[int]
    places: list[Place]

    def tokens(self, begin: int, end: int) -> range:
        """The tokens of the text that characters `begin` to `end` - 1 are part of, without the space around them."""
        begin, end = self._stripped(begin, end)
        first = bisect_right(self.places, begin, key=itemgetter(1))
        return range(first, bisect_left(self.places, end, key=itemgetter(0)))

    def characters(self, first: int, last: int) -> Place:
        """Begin and end of the characters of tokens `first` to `last`, without the space around them."""
        return self._stripped(self.places[first][0], self.places[last][1])

    def _stripped(self, begin: int, end: int) -> Place:
        text = self.text[begin:end]
        end = begin + len(text.rstrip())
        return end - len(text.strip()), end


@dataclass(frozen=True)
class QuestionWindow:
    """Input row of question answering for one window of the text: <bos> question <eos> window <eos>."""

    ids: list[int]
    window: Window  # the tokens of the text that are in the row
    begin: int  # place in the row where the window begins
    nowhere: int  # place in the row that stands for an answer that is not in the window

    def place(self, tokens: range) -> tuple[int, int]:
        """The first and last place in the row of tokens of the text; `nowhere` unless all of them are in the window."""
        if not tokens or not self.window.begin <= tokens[0] <= tokens[-1] < self.window.end:
            return self.nowhere, self.nowhere
        return self.begin + tokens[0] - self.window.begin, self.begin + tokens[-1] - self.window.begin


def encode_context(tokenizer: Tokenizer, text: str) -> Context:
    """Encode a text that may answer questions, with the characters that each token stands for."""
    return Context(text, *tokenizer.encode_with_places(text))


def readings(
    question: Sequence[int], context: Context, longest: int, *, causal: bool, name: str
) -> list[QuestionWindow]:
    """Make the input rows for a question: one for each window of the text that may answer it.

    Args:
        question: The token ids of the question.
        context: The encoded text.
        longest: Tokens of a row, at most.
        causal: True if a token sees only the tokens before it. Then `nowhere` is the last <eos>, which alone has seen
            all, else it is <bos> (Devlin et al. 2019, section 4.3).
        name: The name of the question, for messages.

    Raises:
        InputError: The question leaves less than half of a row to the text.
    """
    room = longest - len(question) - 3
    if 2 * room < longest:
        raise InputError(
            f"{name}: a question of {len(question)} tokens leaves its text less than half of the data.max_length = "
            f"{longest} that are read at once; shorten it, or train with a larger max_length"
        )
    begin = len(question) + 2
    rows = []
    for window in windows(len(context.ids), room):
        ids = sequence(question, context.ids[window.begin : window.end], longest=longest)
        rows.append(QuestionWindow(ids, window, begin, len(ids) - 1 if causal else 0))
    return rows
