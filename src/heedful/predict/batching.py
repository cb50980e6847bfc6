"""Texts on their way to a model that decides something about them, in batches that change nothing.

B batch, S tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, tee
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from heedful.decode.predictor import Done
from heedful.decode.translator import batches, evaluating
from heedful.text.padding import pad
from heedful.text.sequence import is_cut, segments, sequence
from heedful.text.tokenizer import Tokenizer

WINDOW = 1024  # texts read at a time: enough to make batches of similar length
FIRST_WINDOW = 64  # of them are read first, so that it soon shows how fast it goes
BATCH_TOKENS = 8192

T = TypeVar("T")

Apply = Callable[[Tensor, Tensor, Tensor], Tensor]  # ids, padding mask and segments (B S) to one result a row


class Text(NamedTuple):
    """A text, or a pair of texts."""

    first: str
    second: str | None = None


class EncodedText(NamedTuple):
    """A text as the model reads it, and whether its end was cut off."""

    ids: list[int]
    truncated: bool


class BatchedModel:
    """A model, its tokenizer and how much it reads. What a text gives never depends on the texts around it.

    Args:
        model: the model, in any mode.
        tokenizer: its tokenizer.
        longest: tokens of a text or a pair; longer ones lose their end.
    """

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, longest: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.longest = longest

    def read(self, texts: Iterable[Text], apply: Apply | None = None) -> Iterator[Tensor]:
        """The result of each text, on the CPU, in order; `apply` stands for the model itself."""
        return (result for (result,) in self.read_groups(([self.encode(text)] for text in texts), apply))

    def read_groups(self, groups: Iterable[Sequence[list[int]]], apply: Apply | None = None) -> Iterator[list[Tensor]]:
        """The results of each group of rows, such as the windows of a long text, in order."""
        for window in windows(groups):
            results = iter(self.read_rows([row for group in window for row in group], apply or self.model))
            yield from (list(islice(results, len(group))) for group in window)

    def read_with_rows(self, texts: Iterable[Text]) -> Iterator[tuple[EncodedText, Tensor]]:
        """Run the model on texts; yield the row of ids that each became and its result, in order."""
        given, read = tee(map(self.row, texts))
        results = self.read_groups([row.ids] for row in read)
        return ((row, result) for row, (result,) in zip(given, results, strict=True))

    def encode(self, text: Text) -> list[int]:
        """The ids of a text as the model was trained to see it."""
        return self.row(text).ids

    def row(self, text: Text) -> EncodedText:
        """A text as the model was trained to see it, and whether its end was cut off."""
        parts = [self.tokenizer.encode(part) for part in text if part is not None]
        ids = sequence(*parts, longest=self.longest)
        return EncodedText(ids, is_cut(ids, *parts))

    @torch.inference_mode()
    def read_rows(self, rows: Sequence[list[int]], apply: Apply, done: Done = lambda _: None) -> list[Tensor]:
        """The result of each row of ids; where it has one for each token, padding follows. `done` counts rows."""
        found: list[Tensor] = [torch.empty(0)] * len(rows)
        device = next(self.model.parameters()).device
        with evaluating(self.model):
            for batch in batches(rows, BATCH_TOKENS):
                ids, padding_mask = pad([rows[i] for i in batch])
                inputs = (torch.from_numpy(x).to(device) for x in (ids, padding_mask, segments(ids)))
                for index, result in zip(batch, apply(*inputs).float().cpu(), strict=True):
                    found[index] = result
                done(len(batch))
        return found


def windows(items: Iterable[T]) -> Iterator[list[T]]:
    """Items in lists of `WINDOW`, the first of which is shorter."""
    items = iter(items)
    for size in chain([FIRST_WINDOW], repeat(WINDOW)):
        if not (window := list(islice(items, size))):
            return
        yield window
