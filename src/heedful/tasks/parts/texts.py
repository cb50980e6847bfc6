"""Data with two rows of numbers per example: the tokens of a text or text pair, and the targets.

B batch, S tokens, T targets.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.batches import assemble
from heedful.data.preparation.pairs import prepare_examples
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import Example, ScoredText
from heedful.data.stores import PairStore, Rows
from heedful.tasks.dataset import B, Dataset, Report
from heedful.tasks.readers.texts import TextReader
from heedful.text.sequences import is_truncated, segments, sequence
from heedful.text.tokenizer import PAD, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class PaddedTexts:
    """Batch of padded texts: token ids, padding mask and segments."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]

    @classmethod
    def of(cls, ids: np.ndarray, device: torch.device) -> "PaddedTexts":
        """Move padded rows of ids, (B, S), to a device."""
        return cls(*(torch.from_numpy(x).to(device) for x in (ids, ids != PAD, segments(ids))))


@dataclass(frozen=True)
class TextBatch:
    """Batch of padded texts, or text pairs, and their targets."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    targets: Int[Tensor, "B T"]
    tokens: int
    counts: tuple[int, ...]  # divisor of the loss: the number of texts or words


def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> TextBatch:
    """Collate padded rows of ids, (B, S), and of targets, (B, T), into a batch of texts."""
    texts = PaddedTexts.of(ids, device)
    return TextBatch(
        ids=texts.ids,
        padding_mask=texts.padding_mask,
        segments=texts.segments,
        targets=torch.from_numpy(targets).to(device),
        tokens=int((ids != PAD).sum()),
        counts=(len(ids),),
    )


def encode_example(
    example: Example | ScoredText, corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport
) -> list[int]:
    """Encode a text, or a pair, as one row of ids; `drops` counts texts that are empty or truncated."""
    texts = [text for text in (example.text, example.pair) if text is not None]
    ids = [tokenizer.encode(text) for text in texts]
    row = sequence(*ids, longest=recipe.data.max_length)
    if is_truncated(row, *ids):
        drops.remark("cut", corpus.source, example.line)
    if not all(text.strip() for text in texts):
        drops.remark("empty", corpus.source, example.line)
    return row


class TextRows(Dataset[B]):
    """Base class of data with two rows of numbers per example: a subclass sets its `reader` and defines `rows`."""

    reader: ClassVar[type[TextReader]]

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        resolved = cls.reader.resolve(recipe)
        examples = prepare_examples(
            recipe,
            folder,
            lambda corpus: cls.reader.texts(corpus, recipe),
            lambda corpus, tokenizer, drops: cls.rows(corpus, resolved, tokenizer, drops),
            report,
            tokenizers,
        )
        return cls(resolved, examples)

    @staticmethod
    @abstractmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each example of a corpus as two rows, ids and targets; `drops` counts those left out or truncated."""

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> Any:
        return collate(ids, targets, device)

    def lengths(self, store: PairStore) -> np.ndarray:
        """Return the length of the text as that of both sides, because the model does not read the targets."""
        return np.repeat(store.lengths[:, :1], 2, axis=1)

    def read(self, stores: Sequence[PairStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> B:
        return self.collate(*assemble(stores, ids), device)


def number_distinct(items: Iterable[Hashable]) -> np.ndarray:
    """Number items in the order of their first occurrence; equal items get equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items])


def matching_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mark each (i, j) for which the first side of pair i and the second side of pair j occur together in some pair.

    `first` and `second`, (B,), have the same number for equal sides: see `number_distinct`. The result, (B, B), is True
    on the diagonal, and also off it if a side occurs more than once.
    """
    together = np.zeros((first.max() + 1, second.max() + 1), dtype=np.bool_)
    together[first, second] = True
    return together[first][:, second]
