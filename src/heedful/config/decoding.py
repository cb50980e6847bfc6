"""Settings of decoding: beam search and sampling."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.setting import Count, Natural, NonNegative, PositiveShare, Rate, Setting

EXTRA = 50  # the least decode.max_extra that training chooses, and what it is where nothing was measured
MAX_EXTRA = 10_000  # the largest decode.max_extra


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Settings of beam search. A hypothesis scores log P(y|x) / penalty(|y|), where |y| counts <eos>."""

    beam: Annotated[int, Ge(1), Le(1000), Setting(aliases=("beam_size", "num_beams"), resume="free")] = 4
    """Beam size: hypotheses kept at each step; 1 is greedy search."""

    penalty: Annotated[Literal["gnmt", "average", "average_text"], Setting(resume="free")] = "gnmt"
    """Length penalty: `gnmt` is ((5 + |y|) / 6)^alpha (Wu et al. 2016), `average` is |y|^alpha, and `average_text` is
    (|y| - 1)^alpha, that of Whisper."""

    alpha: Annotated[float, Ge(0), Le(10), Setting(aliases=("length_penalty", "lenpen"), resume="free")] = 0.6
    """Strength of the length penalty; 0 turns it off."""

    n_best: Annotated[Count, Setting(aliases=("nbest", "num_return_sequences"), resume="free")] = 1
    """Number of outputs for each input, at most the beam size. Plain text is the best of them only."""

    patience: Annotated[float, Ge(0), Le(1000), Setting(resume="free")] = 1.0
    """Early stopping: an input is done when patience x beam size hypotheses have ended (Kasai et al. 2022). With 0 it
    is done when no other hypothesis can become the best."""

    max_extra: Annotated[
        Annotated[int, Ge(0), Le(MAX_EXTRA)] | None, Setting(aliases=("max_len_b", "max_length_b"))
    ] = None
    """Length limit of an output: this many tokens more than its input has, or in all if the input is not text. Not
    set: what the training texts need."""

    batch_tokens: Annotated[Count, Setting(resume="free")] = 8192
    """Batch size in source tokens x beam size; changes speed and memory, never results."""

    @property
    def extra(self) -> int:
        """The value of `max_extra`; 50 where it is not set, and no training has measured it."""
        return EXTRA if self.max_extra is None else self.max_extra


@dataclass(frozen=True, kw_only=True)
class GenerateConfig:
    """Settings of text generation. The sampling filters apply in the order of these fields, then a token is drawn."""

    max_tokens: Annotated[int, Ge(1), Le(1_000_000), Setting(aliases=("max_new_tokens",))] = 256
    """Longest answer in tokens. It ends earlier where the model writes `<eos>`."""

    min_tokens: Annotated[Natural, Setting(aliases=("min_new_tokens",))] = 0
    """Number of tokens before the first that may be `<eos>`."""

    ignore_eos: bool = False
    """Never write `<eos>`: an answer ends at `max_tokens` or at a text of `stop`."""

    repetition_penalty: Annotated[float, Ge(0.001)] = 1.0
    """Repetition penalty (Keskar et al. 2019). Above 1, tokens of the prompt and the answer become less likely; 1 turns
    it off."""

    frequency_penalty: float = 0.0
    """Number subtracted from the logit of a token for each time that the answer has the token."""

    presence_penalty: float = 0.0
    """Number subtracted once from the logit of each token that the answer has."""

    no_repeat_ngram: Annotated[Count | None, Setting(aliases=("no_repeat_ngram_size",))] = None
    """Length of token sequences that may not occur twice."""

    temperature: Annotated[NonNegative, Setting(aliases=("temp",))] = 1.0
    """Sampling temperature. Below 1: closer to the most likely token; above 1: more varied; 0: greedy decoding."""

    top_k: Count | None = None
    """Top-k sampling: draw from the k most likely tokens."""

    top_p: PositiveShare | None = None
    """Nucleus sampling (top-p): draw from the fewest tokens whose probabilities add up to p (Holtzman et al. 2020)."""

    min_p: Rate | None = None
    """Min-p sampling: leave out tokens below p times the probability of the most likely one (Nguyen et al. 2024)."""

    typical: PositiveShare | None = None
    """Typical sampling: draw from the tokens whose surprisal is closest to the entropy, as many as have this
    probability together (Meister et al. 2023)."""

    stop: tuple[str, ...] = ()
    """Texts that end an answer; they are not part of it."""

    seed: Natural = 1
    """Seed of the random numbers; another seed gives another answer."""

    batch_tokens: Count = 16_384
    """Batch size in prompt and answer tokens; changes speed and memory, never results."""
