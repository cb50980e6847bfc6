"""Hypotheses: outputs of a search with their scores. This module does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.search.length_penalty import length_penalty
from heedful.text.pipeline import EOS


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
