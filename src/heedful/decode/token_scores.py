"""Log-probabilities of given texts under a model, for `Generator.score` and `Translator.score`.

N tokens, D model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

LOGITS_AT_ONCE = 2**24  # so that the logits of a long text over a large vocabulary are never all in memory


@dataclass(frozen=True)
class TokenScores:
    """Log-probabilities of the tokens of a text, in nats, each given all tokens before it.

    Attributes:
        tokens: ids of the tokens.
        pieces: printable names of the tokens.
        log_probs: log P of each token.
    """

    tokens: list[int]
    pieces: list[str]
    log_probs: list[float]

    @property
    def total(self) -> float:
        """Log-probability of the whole text: the sum over its tokens."""
        return math.fsum(self.log_probs)

    @property
    def mean(self) -> float:
        """Mean log-probability of a token; NaN for a text without tokens."""
        return self.total / len(self.log_probs) if self.log_probs else math.nan


def log_probs_of(
    hidden: Float[Tensor, "N D"], targets: Int[Tensor, " N"], output: Callable[[Tensor], Tensor] | nn.Linear
) -> Float[Tensor, " N"]:
    """Compute log P of each target from the hidden state that predicts it, in float32, a few rows at a time."""
    vocabulary = output(hidden[:1]).size(-1)
    rows = max(1, LOGITS_AT_ONCE // vocabulary)
    parts = zip(hidden.split(rows), targets.split(rows), strict=True)
    scores = [output(part).float().log_softmax(-1).gather(-1, chosen[:, None])[:, 0] for part, chosen in parts]
    return torch.cat(scores)
