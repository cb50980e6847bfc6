"""Base class of tasks on texts: an example is one row of tokens, a text or a pair, and one row of targets.

B batch, S tokens, T targets.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import Example, ScoredText
from heedful.data.stores.pair_store import PairStore
from heedful.tasks.examples import RowTask
from heedful.text.sequence import is_cut, segments, sequence
from heedful.text.tokenizer import PAD, Tokenizer


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


class TextTask(RowTask[TextBatch]):
    """Base class of tasks on texts; a subclass defines how a corpus is read, the model, the loss and the scores."""

    command = "heedful predict"

    def collate(self, first: np.ndarray, second: np.ndarray, device: torch.device) -> TextBatch:
        """Collate padded rows of token ids, (B, S), and their targets, (B, T), into a batch on a device."""
        return collate(first, second, device)

    def lengths(self, store: PairStore) -> np.ndarray:
        """Numbers of tokens that the model reads from each example: those of the text only, without the targets."""
        return np.repeat(store.lengths[:, :1], 2, axis=1)
