"""Outputs of predictors that write: log-probabilities of given texts, and outputs cut at their length limit."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import DecodeConfig


@dataclass
class CutOutputs:
    """Counts of outputs, and of those that were cut because they reached their length limit without <eos>."""

    outputs: int = 0
    cut: int = 0

    def count(self, complete: bool) -> None:
        self.outputs += 1
        self.cut += not complete

    def line(self, config: DecodeConfig, positions: int | None, option: str = "decode.max_extra") -> str | None:
        """Return a sentence about the cut outputs with the remedy; None if there are none.

        Args:
            config: the settings of the search.
            positions: the positions that the decoder of the model learns, which no setting of a search can raise.
            option: the name of the setting that the reader can change.
        """
        if not self.cut:
            return None
        learned = "" if positions is None else f" (at most the {positions:,} positions that the model learns)"
        return (
            f"{self.cut:,} of {self.outputs:,} outputs were cut at the length limit, decode.max_extra = "
            f"{config.extra:,}{learned}; if they repeat themselves, train longer, otherwise raise {option}"
        )


MAX_OPTIONS = 10  # words for each gap, and neighbours of each word


@dataclass(frozen=True)
class Option:
    """One possible output of a model for a text, such as a translation, a word for a gap, or a class.

    Attributes:
        text: the output as text.
        probability: probability that the model gives the output; None if the model gives none.
        score: score of a hypothesis in beam search.
        pieces: tokens of an output that was generated token by token.
        log_probs: log-probability of each token in `pieces`.
        complete: False if a length limit cut the output.
    """

    text: str
    probability: float | None = None
    score: float | None = None
    pieces: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Answer:
    """Answer of a model about a text or about one token, as a list of options, best first."""

    options: list[Option]
    place: int | None = None  # index of the token that the answer is about, such as a gap; None: the whole text


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
    blocks = zip(hidden.split(rows), targets.split(rows), strict=True)
    scores = [output(states).float().log_softmax(-1).gather(-1, tokens[:, None])[:, 0] for states, tokens in blocks]
    return torch.cat(scores)
