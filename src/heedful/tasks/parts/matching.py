"""Learning what belongs together, with the other examples of a batch as negatives (Henderson et al. 2017, section 4.4).

B batch, S tokens.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.losses import Loss
from heedful.text.sequences import segments
from heedful.text.tokenizer import PAD


@dataclass(frozen=True)
class PaddedTexts:
    """Batch of padded texts: token ids, padding mask and segments."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]


def texts_of(ids: np.ndarray, device: torch.device) -> PaddedTexts:
    """Create a batch of padded texts from rows of ids, on a device."""
    return PaddedTexts(*(torch.from_numpy(x).to(device) for x in (ids, ids != PAD, segments(ids))))


def kinds(items: Iterable[Hashable]) -> np.ndarray:
    """Number items in the order of their first occurrence: equal items have equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items])


def pairs_of_kinds(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mark at (i, j) if the first side of pair i and the second side of pair j are together in some pair of a batch.

    `first` and `second` (B,) number the sides from 0, equal ones alike; see `kinds`.
    """
    together = np.zeros((first.max() + 1, second.max() + 1), dtype=np.bool_)
    together[first, second] = True
    return together[first][:, second]


def ranking_loss(scores: Float[Tensor, "B B"], answers: Bool[Tensor, "B B"], smoothing: float) -> Loss:
    """Cross-entropy of each query's own passage, on the diagonal, against passages that do not answer the query."""
    # Another passage that answers the query as well is not a negative: it is left out of the softmax.
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    candidates = own | ~answers
    logs = scores.masked_fill(~candidates, -torch.inf).log_softmax(-1)
    nll = -logs.diagonal()
    mean = -logs.masked_fill(~candidates, 0.0).sum(-1) / candidates.sum(-1)
    total = ((1 - smoothing) * nll + smoothing * mean).sum()
    return Loss(total, nll.sum().detach(), len(scores))
