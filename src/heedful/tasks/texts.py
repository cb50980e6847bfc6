"""What tasks on texts share: each example is one row of tokens, a text or a pair, and one row of targets.

B batch, S tokens, T targets.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.filters import DropReport
from heedful.data.labelled import Example, ScoredText
from heedful.data.pair_store import PairStore
from heedful.tasks.examples import ExampleTask
from heedful.text.sequence import is_cut, segments, sequence
from heedful.text.tokenizer import PAD, Tokenizer


@dataclass(frozen=True)
class TextBatch:
    """Padded texts and their targets."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    targets: Int[Tensor, "B T"]
    tokens: int
    counts: tuple[int, ...]  # what the loss is a mean over: texts, or words


def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> TextBatch:
    """Make a batch of padded rows of ids, (B, S), and of targets, (B, T)."""
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
    """A text, or a pair, as one row of ids; `drops` remarks upon it where it is empty or its end is cut off."""
    texts = [text for text in (example.text, example.pair) if text is not None]
    ids = [tokenizer.encode(text) for text in texts]
    row = sequence(*ids, longest=recipe.data.max_length)
    if is_cut(row, *ids):
        drops.remark("cut", corpus.source, example.line)
    if not all(text.strip() for text in texts):
        drops.remark("empty", corpus.source, example.line)
    return row


class TextTask(ExampleTask[TextBatch]):
    """A task on texts. What it adds is how a corpus is read, the model, the loss and the scores."""

    command = "heedful predict"

    def collate(self, first: np.ndarray, second: np.ndarray, device: torch.device) -> TextBatch:
        """Texts and their targets."""
        return collate(first, second, device)

    def lengths(self, store: PairStore) -> np.ndarray:
        """The model reads the text only."""
        return np.repeat(store.lengths[:, :1], 2, axis=1)
