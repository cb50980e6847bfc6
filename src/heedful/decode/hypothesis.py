"""One output of a search, and how it is scored."""

from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.decode.penalty import PENALTIES
from heedful.text.tokenizer import EOS


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
