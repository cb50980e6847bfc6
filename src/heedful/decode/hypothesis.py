"""Hypothesis of a search (beam or greedy): the token ids of an output, with their log-probabilities and its score."""

from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.decode.length_penalty import PENALTIES
from heedful.text.tokenizer import EOS


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
