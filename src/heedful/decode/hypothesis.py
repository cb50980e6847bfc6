"""One output of a search, and its score: log P(y|x) / length penalty(|y|), where |y| counts <eos>.

Without a length penalty a search prefers short outputs: every further token makes the probability smaller.
"""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.text.tokenizer import EOS


def gnmt(length: int, alpha: float) -> float:
    """Google's length penalty ((5 + |y|) / 6)^alpha (Wu et al. 2016, formula 14)."""
    return ((5 + length) / 6) ** alpha


def average(length: int, alpha: float) -> float:
    """Length penalty |y|^alpha: 0 compares total log-probabilities, 1 their mean per token."""
    return length**alpha


PENALTIES: dict[str, Callable[[int, float], float]] = {"gnmt": gnmt, "average": average}


@dataclass(frozen=True)
class Hypothesis:
    """An output with its score.

    Attributes:
        tokens: the ids of the output, without <bos> and <eos>.
        score: the sum of `token_scores` / penalty(their number), natural logarithms.
        token_scores: log P of each token given those before it; the last one is that of <eos>, unless the output was
            cut at the limit.
    """

    tokens: list[int]
    score: float
    token_scores: list[float]

    @property
    def complete(self) -> bool:
        """Whether the output ends in <eos>; if not, it was cut at the longest allowed length and scored as it is."""
        return len(self.token_scores) > len(self.tokens)


def hypothesis(tokens: list[int], token_scores: list[float], config: DecodeConfig) -> Hypothesis:
    """Score an output: `tokens` still has its <eos>, if it got one, and each token has its log-probability."""
    score = sum(token_scores) / PENALTIES[config.penalty](len(token_scores), config.alpha)
    return Hypothesis(tokens[:-1] if tokens[-1] == EOS else tokens, score, token_scores)
