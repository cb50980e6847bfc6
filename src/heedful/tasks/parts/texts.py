"""Data of two rows of tokens an example: a text, or a pair of texts, and its targets.

B batch, S tokens, T targets.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.batches import assemble
from heedful.data.preparation.pairs import check_examples, prepare_examples
from heedful.data.preparation.prepared_data import PreparedData, at_least_one
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import Example, ScoredText
from heedful.data.stores import PairStore, Rows
from heedful.tasks.dataset import B, Dataset, Report
from heedful.tasks.parts.batches import BatchesByLength
from heedful.text.sequences import is_cut, segments, sequence
from heedful.text.tokenizer import PAD, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class TextBatch:
    """Batch of padded texts, or pairs of texts, and their targets."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    targets: Int[Tensor, "B T"]
    tokens: int
    counts: tuple[int, ...]  # divisor of the loss: the number of texts, or of words


def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> TextBatch:
    """Collate padded rows of ids, (B, S), and of targets, (B, T), into a batch of texts."""
    return TextBatch(
        ids=torch.from_numpy(ids).to(device),
        padding_mask=torch.from_numpy(ids != PAD).to(device),
        segments=torch.from_numpy(segments(ids)).to(device),
        targets=torch.from_numpy(targets).to(device),
        tokens=int((ids != PAD).sum()),
        counts=(len(ids),),
    )


def row_of(
    example: Example | ScoredText, corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport
) -> list[int]:
    """Encode a text, or a pair, as one row of ids; `drops` notes texts that are empty or cut off."""
    texts = [text for text in (example.text, example.pair) if text is not None]
    ids = [tokenizer.encode(text) for text in texts]
    row = sequence(*ids, longest=recipe.data.max_length)
    if is_cut(row, *ids):
        drops.remark("cut", corpus.source, example.line)
    if not all(text.strip() for text in texts):
        drops.remark("empty", corpus.source, example.line)
    return row


class TextRows(BatchesByLength, Dataset[B]):
    """Base class of data of two rows of tokens an example; a subclass says what the texts and the rows are."""

    def __init__(self, recipe: Recipe, examples: PreparedData[PairStore]) -> None:
        super().__init__(recipe, examples.tokenizers, examples.digest)
        self.plan_batches(examples, recipe)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_examples(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        return at_least_one(cls.texts(corpus, recipe), corpus.source, DropReport())

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        resolved = cls.resolve(recipe)

        examples = prepare_examples(
            recipe,
            folder,
            lambda corpus: cls.texts(corpus, recipe),
            lambda corpus, tokenizer, drops: cls.rows(corpus, resolved, tokenizer, drops),
            report,
            tokenizers,
        )
        return cls(resolved, examples)

    @staticmethod
    @abstractmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Iterate over the texts of a corpus, for the training of a tokenizer."""

    @staticmethod
    @abstractmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each example of a corpus as two rows of ids; `drops` counts the examples that are left out."""

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> Any:
        return collate(ids, targets, device)

    def lengths(self, store: PairStore) -> np.ndarray:
        """The length of the text on both sides, as the model does not read the targets."""
        return np.repeat(store.lengths[:, :1], 2, axis=1)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        return self.collate(*assemble(self.examples.train, ids), device)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> B:
        return self.collate(*assemble(self.examples.stores[-1:], ids), device)
