"""Hypothesis of a search: token ids with log-probabilities, and its score with a length penalty."""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.text.tokenizer import EOS


def gnmt(length: int, alpha: float) -> float:
    """Length penalty of Google's GNMT: ((5 + |y|) / 6)^alpha (Wu et al. 2016, formula 14)."""
    return ((5 + length) / 6) ** alpha


def average(length: int, alpha: float) -> float:
    """Length penalty |y|^alpha: alpha = 0 compares total log-probabilities, 1 their mean per token."""
    return length**alpha


def average_text(length: int, alpha: float) -> float:
    """Length penalty (|y| - 1)^alpha, the tokens without <eos>: Whisper's, for outputs of one or more tokens."""
    return max(1, length - 1) ** alpha


PENALTIES: dict[str, Callable[[int, float], float]] = {"gnmt": gnmt, "average": average, "average_text": average_text}


@dataclass(frozen=True)
class Hypothesis:
    """Hypothesis of a search: the token ids of one output, with its score.

    Attributes:
        tokens: the ids of the output, without <bos> and <eos>.
        score: the sum of `token_scores` / length penalty(number of tokens), natural logarithms.
        token_scores: log P of each token given the tokens before; the last is the score of <eos>, unless the output was
            cut at the limit.
    """

    tokens: list[int]
    score: float
    token_scores: list[float]

    @property
    def complete(self) -> bool:
        """True if the hypothesis ends in <eos>; False if it was cut at the longest allowed length."""
        return len(self.token_scores) > len(self.tokens)


def hypothesis(tokens: list[int], token_scores: list[float], config: DecodeConfig) -> Hypothesis:
    """Create a scored hypothesis from token ids (with <eos>, if the output has one) and their log-probabilities."""
    score = sum(token_scores) / PENALTIES[config.penalty](len(token_scores), config.alpha)
    return Hypothesis(tokens[:-1] if tokens[-1] == EOS else tokens, score, token_scores)
