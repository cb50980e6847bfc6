"""Batched inference on texts: encodes texts, groups rows of similar length and runs the model on each batch.

B batch, S tokens.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, tee
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from heedful.decode.inference import batches, check_numbers, evaluating
from heedful.decode.predictor import Done
from heedful.text.padding import pad
from heedful.text.sequence import is_cut, segments, sequence
from heedful.text.tokenizer import Tokenizer

WINDOW = 1024  # texts read at a time: enough to make batches of similar length
FIRST_WINDOW = 64  # texts of the first window, so that progress shows soon
BATCH_TOKENS = 8192

LOG = logging.getLogger(__name__)

T = TypeVar("T")

Apply = Callable[[Tensor, Tensor, Tensor], Tensor]  # ids, padding mask and segments (B S) to one result for each row


class Text(NamedTuple):
    """Input of a predictor: one text, or a pair of texts."""

    first: str
    second: str | None = None


class EncodedText(NamedTuple):
    """Token ids of a text or pair, as the model reads it, and whether its end was cut off."""

    ids: list[int]
    truncated: bool


class BatchedModel:
    """Runs a model with its tokenizer on texts, in batches. The result of a text never depends on the other texts.

    Args:
        model: the model, in any mode.
        tokenizer: its tokenizer.
        longest: the most tokens of a text or a pair; longer inputs lose their end.
    """

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, longest: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.longest = longest
        self.warned = False

    def read(self, texts: Iterable[Text], apply: Apply | None = None) -> Iterator[Tensor]:
        """Run the model, or `apply` in its place, on texts; yield the result of each, on the CPU, in order."""
        return (result for (result,) in self.read_groups(([self.encode(text)] for text in texts), apply))

    def read_groups(self, groups: Iterable[Sequence[list[int]]], apply: Apply | None = None) -> Iterator[list[Tensor]]:
        """Run the model on groups of rows, such as the windows of a long text; yield each group's results, in order."""
        for window in windows(groups):
            results = iter(self.read_rows([row for group in window for row in group], apply or self.model))
            yield from (list(islice(results, len(group))) for group in window)

    def read_with_rows(self, texts: Iterable[Text]) -> Iterator[tuple[EncodedText, Tensor]]:
        """Run the model on texts; yield the token ids of each text and its result, in order."""
        given, read = tee(map(self.row, texts))
        results = self.read_groups([row.ids] for row in read)
        return ((row, result) for row, (result,) in zip(given, results, strict=True))

    def encode(self, text: Text) -> list[int]:
        """Encode a text or pair as the token ids that the model reads; warn of the first one whose end is cut off."""
        ids, cut = self.row(text)
        if cut and not self.warned:
            self.warned = True
            LOG.warning("texts are cut to the %s tokens that the model reads, first %r", self.longest, text.first[:40])
        return ids

    def row(self, text: Text) -> EncodedText:
        """Encode a text or pair as token ids, and tell whether its end was cut off."""
        parts = [self.tokenizer.encode(part) for part in text if part is not None]
        ids = sequence(*parts, longest=self.longest)
        return EncodedText(ids, is_cut(ids, *parts))

    @torch.inference_mode()
    def read_rows(self, rows: Sequence[list[int]], apply: Apply, done: Done = lambda _: None) -> list[Tensor]:
        """Run the model on rows of token ids, in batches; results for each token end in padding. `done` counts rows.

        Raises:
            RunError: a result is not a number.
        """
        found: list[Tensor] = [torch.empty(0)] * len(rows)
        device = next(self.model.parameters()).device
        with evaluating(self.model):
            for batch in batches(rows, BATCH_TOKENS):
                ids, padding_mask = pad([rows[i] for i in batch])
                inputs = (torch.from_numpy(x).to(device) for x in (ids, padding_mask, segments(ids)))
                results = apply(*inputs).float().cpu()
                check_numbers(results)
                for index, result in zip(batch, results, strict=True):
                    found[index] = result
                done(len(batch))
        return found


def windows(items: Iterable[T]) -> Iterator[list[T]]:
    """Split items into lists of `WINDOW` items, the first of which is shorter."""
    items = iter(items)
    for size in chain([FIRST_WINDOW], repeat(WINDOW)):
        if not (window := list(islice(items, size))):
            return
        yield window
