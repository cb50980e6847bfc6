"""Translation: sentence pairs in, the loss of each target token given the source and the tokens before it.

B batch, S source tokens, T target tokens.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.losses import Loss, cross_entropy
from heedful.models import EncoderDecoder
from heedful.text.tokenizer import BOS, PAD


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs. The decoder's input is the target shifted right, beginning with <bos>."""

    source: Int[Tensor, "B S"]
    source_keep: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_keep: Bool[Tensor, "B T"]
    source_tokens: int
    target_tokens: int

    @property
    def tokens(self) -> int:
        """Real tokens of both sides, <eos> included."""
        return self.source_tokens + self.target_tokens


def collate(source: np.ndarray, target: np.ndarray, device: torch.device) -> Batch:
    """Make a batch of padded rows of ids, both sides ending in <eos>."""
    x, y = torch.from_numpy(source), torch.from_numpy(target)
    shifted = torch.nn.functional.pad(y, (1, -1), value=BOS)
    return Batch(
        source=x.to(device),
        source_keep=(x != PAD).to(device),
        target_in=shifted.to(device),
        target_out=y.to(device),
        target_keep=(y != PAD).to(device),
        source_tokens=int((source != PAD).sum()),
        target_tokens=int((target != PAD).sum()),
    )


def loss(model: EncoderDecoder, batch: Batch, smoothing: float) -> Loss:
    """The loss of every real target token, <eos> included."""
    hidden = model.hidden(batch.source, batch.source_keep, batch.target_in, batch.target_keep)
    return cross_entropy(hidden[batch.target_keep], model.output.weight, batch.target_out[batch.target_keep], smoothing)
