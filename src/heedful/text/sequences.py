"""Rows of token ids for models: padded, in pairs, or as overlapping windows (Devlin et al. 2019)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.tokenizer import BOS, EOS, PAD, CharacterSpan, Tokenizer

Rows = Sequence[Sequence[int]]


def pad(
    rows: Rows, length: int | None = None, side: Literal["left", "right"] = "right"
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pad rows of token ids with <pad> to one length, and return the padding mask.

    Args:
        rows: B rows of ids, of any length.
        length: The length L of every row of the result, by default the length of the longest row.
        side: The side where <pad> goes.

    Returns:
        The ids (B, L), and the padding mask (B, L): True for real ids.

    Raises:
        InputError: A row is longer than `length`; `truncate` shortens it.
    """
    most = max(map(len, rows), default=0)
    length = most if length is None else length
    if most > length:
        raise InputError(f"a row of {most} ids does not fit into a length of {length}; truncate it, or pad to {most}")
    ids = np.full((len(rows), length), PAD, dtype=np.int64)
    padding_mask = np.zeros((len(rows), length), dtype=np.bool_)
    for row, values in enumerate(rows):
        columns = slice(len(values)) if side == "right" else slice(length - len(values), length)
        ids[row, columns] = values
        padding_mask[row, columns] = True
    return ids, padding_mask


def batches(rows: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Group rows of token ids without <eos> into batches of similar length, longest first.

    Yields the indices of the rows of each batch; empty rows are left out. The size of a batch, its number of rows times
    its maximum length including <eos>, is at most `tokens`. A row that exceeds this is a batch by itself.
    """
    batch: list[int] = []
    # Longest first: the first row of a batch determines its width.
    for index in sorted(filter(rows.__getitem__, range(len(rows))), key=lambda i: -len(rows[i])):
        if batch and (len(batch) + 1) * (len(rows[batch[0]]) + 1) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def truncate(rows: Rows, length: int) -> list[list[int]]:
    """Truncate rows of token ids to their first `length` ids; no <eos> is added."""
    if length < 0:
        raise InputError(f"rows cannot be truncated to {length} ids; give 0 or more")
    return [list(row[:length]) for row in rows]


def sequence(first: Sequence[int], second: Sequence[int] | None = None, *, longest: int) -> list[int]:
    """Join the ids of a text, <bos> A <eos>, or of a pair, <bos> A <eos> B <eos>, into a row of at most `longest` ids.

    Truncation shortens the longer text of a pair first.
    """
    if second is None:
        return [BOS, *first[: longest - 2], EOS]
    room = longest - 3
    # The second text gets half of the room, or all that the first one leaves if that is more.
    second = second[: max(room // 2, room - len(first))]
    return [BOS, *first[: room - len(second)], EOS, *second, EOS]


def is_truncated(row: Sequence[int], first: Sequence[int], second: Sequence[int] | None = None) -> bool:
    """Return True if `sequence` truncated the texts of a row."""
    return len(row) < (len(first) + 2 if second is None else len(first) + len(second) + 3)


def segments(ids: np.ndarray) -> np.ndarray:
    """Return the segment ids of padded rows from `sequence`, (B, S): 1 for the second text and its <eos>, else 0."""
    # The segment is the number of <eos> before a token, so that an <eos> belongs to the text that it ends.
    ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS)
    return np.where(ids == PAD, 0, ended)


class Window(NamedTuple):
    """Window of a text: tokens `begin` to `end` - 1, counted from 0.

    Tokens `first` to `stop` - 1 have more context in this window than in others.
    """

    begin: int
    end: int
    first: int
    stop: int


def windows(count: int, room: int) -> list[Window]:
    """Split a text of `count` tokens into overlapping windows of at most `room` tokens, in order.

    The ranges from `first` to `stop` - 1 of all windows contain each token of the text once.
    """
    last = max(count - room, 0)
    # The last window ends with the text, so that all windows of a long text are full.
    begins = [*range(0, last, room - room // 2), last]
    middles = [(begin + before + room) // 2 for before, begin in pairwise(begins)]  # midpoints of the overlaps
    return [
        Window(begin, min(begin + room, count), first, stop)
        for begin, (first, stop) in zip(begins, pairwise([0, *middles, count]), strict=True)
    ]


@dataclass(frozen=True)
class Context:
    """Encoded context of a question: its token ids, and the span of characters that each token represents."""

    text: str
    ids: list[int]
    places: list[CharacterSpan]

    def tokens(self, begin: int, end: int) -> range:
        """Return the indices of the tokens of characters `begin` to `end` - 1, without surrounding whitespace."""
        begin, end = self._stripped(begin, end)
        # A token overlaps the characters if it ends after `begin` and begins before `end`.
        first = bisect_right(self.places, begin, key=itemgetter(1))
        return range(first, bisect_left(self.places, end, key=itemgetter(0)))

    def characters(self, first: int, last: int) -> CharacterSpan:
        """Return the span of the characters of tokens `first` to `last`, without surrounding whitespace."""
        return self._stripped(self.places[first][0], self.places[last][1])

    def _stripped(self, begin: int, end: int) -> CharacterSpan:
        text = self.text[begin:end]
        end = begin + len(text.rstrip())
        return end - len(text.strip()), end


@dataclass(frozen=True)
class QuestionWindow:
    """Input row for question answering over one window of the context: <bos> question <eos> window <eos>."""

    ids: list[int]
    window: Window  # the tokens of the context that are in the row
    begin: int  # index in the row where the window begins
    nowhere: int  # index in the row that stands for an answer outside the window, or for no answer

    def place(self, tokens: range) -> tuple[int, int]:
        """Return the indices in the row of the first and last token; `nowhere` unless all tokens are in the window."""
        if not tokens or not self.window.begin <= tokens[0] <= tokens[-1] < self.window.end:
            return self.nowhere, self.nowhere
        return self.begin + tokens[0] - self.window.begin, self.begin + tokens[-1] - self.window.begin


def encode_context(tokenizer: Tokenizer, text: str) -> Context:
    """Encode the context of a question, with the span of characters that each token represents."""
    return Context(text, *tokenizer.encode_with_places(text))


def question_windows(
    question: Sequence[int], context: Context, longest: int, *, causal: bool, name: str
) -> list[QuestionWindow]:
    """Create the input rows for a question: one for each window of its context.

    Args:
        question: The token ids of the question.
        context: The encoded context.
        longest: Maximum number of tokens in a row.
        causal: True if a token attends only to itself and earlier tokens. Then `nowhere` is the last <eos>, which
            attends to all tokens; otherwise it is <bos> (Devlin et al. 2019, section 4.3).
        name: The name of the question, for messages.

    Raises:
        InputError: The question leaves less than half of a row to the context.
    """
    # A row also has <bos> and two <eos>.
    room = longest - len(question) - 3
    if 2 * room < longest:
        raise InputError(
            f"{name}: a question of {len(question)} tokens leaves less than half of data.max_length = {longest} for "
            "its text; shorten the question, or train with a larger data.max_length"
        )
    begin = len(question) + 2
    rows = []
    for window in windows(len(context.ids), room):
        ids = sequence(question, context.ids[window.begin : window.end], longest=longest)
        rows.append(QuestionWindow(ids, window, begin, len(ids) - 1 if causal else 0))
    return rows
