"""Outputs of predictors: ranked options, log-probabilities of texts, and counts of outputs cut at the length limit."""

import math
from dataclasses import dataclass

from heedful.config.schema import DecodeConfig
from heedful.wording import part_of


@dataclass
class CutOutputs:
    """Number of outputs, and how many of them were cut because they reached the length limit without <eos>."""

    outputs: int = 0
    cut: int = 0

    def count(self, complete: bool) -> None:
        self.outputs += 1
        self.cut += not complete

    def line(
        self,
        config: DecodeConfig,
        positions: int | None,
        option: str = "decode.max_extra",
        *,
        in_training: bool = False,
    ) -> str | None:
        """Return a warning about cut outputs, with a remedy; None if no output was cut.

        Args:
            config: The settings of the search.
            positions: The number of positions that the decoder has learned; None if it is unlimited.
            option: The setting to raise, as the user writes it.
            in_training: True if the model is being trained, so that longer training is a remedy.
        """
        if not self.cut:
            return None
        learned = "" if positions is None else f" (and never more than the model's {positions:,} positions)"
        were, they, repeat = ("was", "it", "repeats itself") if self.cut == 1 else ("were", "they", "repeat themselves")
        remedy = f"if {they} {repeat}, {'train longer' if in_training else 'a higher limit does not help'}; otherwise"
        return (
            f"{part_of(self.cut, self.outputs, 'outputs')} {were} cut at the length limit set by decode.max_extra = "
            f"{config.extra:,}{learned}; {remedy} raise {option}"
        )


MAX_OPTIONS = 10  # words for each gap, and neighbours of each word, in the inspector


@dataclass(frozen=True)
class Option:
    """A possible output of a model for a text, such as a translation, a word for a gap, or a class.

    Attributes:
        text: The output as text.
        probability: Probability that the model assigns to the output; None if it assigns none.
        score: Score of a hypothesis in beam search, or cosine similarity of a neighbour.
        pieces: Tokens of an output that was generated token by token.
        log_probs: Log-probability of each token in `pieces`.
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
    """Ranked outputs of a model for a text or for one token of it, best first."""

    options: list[Option]
    place: int | None = None  # index of the token, such as a gap; None: the whole text


@dataclass(frozen=True)
class TokenScores:
    """Log-probabilities of the tokens of a text, in nats, each given the tokens before it."""

    tokens: list[int]
    pieces: list[str]  # printable names of the tokens
    log_probs: list[float]

    @property
    def total(self) -> float:
        """Log-probability of the whole text."""
        return math.fsum(self.log_probs)

    @property
    def mean(self) -> float:
        """Mean log-probability per token; NaN for a text without tokens."""
        return self.total / len(self.log_probs) if self.log_probs else math.nan
