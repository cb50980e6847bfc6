"""Hypotheses: outputs of a search, with their scores and length penalties. This module does not import torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.text.pipeline import EOS

# Length penalties by their names in a recipe: functions of the length |y| of an output, <eos> included, and of alpha.
LENGTH_PENALTIES: dict[str, Callable[[int, float], float]] = {
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, formula 14
    "average": lambda length, alpha: length**alpha,  # with alpha = 0 the score is log P, with 1 its mean per token
    "average_text": lambda length, alpha: max(1, length - 1) ** alpha,  # Whisper's: <eos> does not count
}


@dataclass(frozen=True)
class Hypothesis:
    """Hypothesis of a search: the token ids of one output, with its score.

    Attributes:
        tokens: The ids of the output, without <bos> and <eos>.
        token_scores: Log P of each token given the previous ones; the last is the score of <eos>, unless the output was
            cut at the limit.
        penalty: The length penalty for `len(token_scores)` tokens.
        log_prob: The sum of `token_scores`; if None, `score` computes it.
    """

    tokens: list[int]
    token_scores: Sequence[float]
    penalty: float
    log_prob: float | None = None

    @property
    def score(self) -> float:
        """Natural logarithm of the output's probability, divided by the length penalty."""
        return (sum(self.token_scores) if self.log_prob is None else self.log_prob) / self.penalty

    @classmethod
    def scored(cls, tokens: list[int], token_scores: list[float], config: DecodeConfig) -> "Hypothesis":
        """Score an output, given its token ids (with <eos>, if it was generated) and their log-probabilities."""
        # Each token lowers log P: without a length penalty, searches prefer short outputs.
        penalty = length_penalty(len(token_scores), config)
        return cls(tokens[:-1] if tokens[-1] == EOS else tokens, token_scores, penalty, sum(token_scores))

    @property
    def complete(self) -> bool:
        """True if the hypothesis ends in <eos>; False if it was cut at the maximum length."""
        return len(self.token_scores) > len(self.tokens)


def length_penalty(length: int, config: DecodeConfig) -> float:
    """Return the divisor of the log-probability of an output with `length` tokens, <eos> included."""
    return LENGTH_PENALTIES[config.penalty](length, config.alpha)
