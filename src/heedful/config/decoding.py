"""Decoding settings: beam search and sampling."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.setting import Count, Natural, NonNegative, PositiveShare, Rate, Setting

EXTRA = 50  # the smallest decode.max_extra that training derives, and the default if it has not derived one
MAX_EXTRA = 10_000  # the largest decode.max_extra


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Beam search settings. A hypothesis y scores log P(y|x) / penalty(|y|); its length |y| includes <eos>."""

    beam: Annotated[int, Ge(1), Le(1000), Setting(aliases=("beam_size", "num_beams"), resume="free")] = 4
    """Beam size: hypotheses kept at each step; 1 is greedy search."""

    penalty: Annotated[Literal["gnmt", "average", "average_text"], Setting(resume="free")] = "gnmt"
    """Length penalty: `gnmt` is ((5 + |y|) / 6)^alpha (Wu et al. 2016), `average` is |y|^alpha, and `average_text` is
    (|y| - 1)^alpha, as in Whisper."""

    alpha: Annotated[float, Ge(0), Le(10), Setting(aliases=("length_penalty", "lenpen"), resume="free")] = 0.6
    """Strength of the length penalty; 0 turns it off."""

    n_best: Annotated[Count, Setting(aliases=("nbest", "num_return_sequences"), resume="free")] = 1
    """Number of outputs for each input, at most the beam size. Plain-text output has only the best one."""

    patience: Annotated[float, Ge(0), Le(1000), Setting(resume="free")] = 1.0
    """Early stopping: the search for an output ends once patience x beam size hypotheses (or n_best, if larger) are
    complete (Kasai et al. 2022). With 0, it ends only once no other hypothesis can become the best."""

    max_extra: Annotated[
        Annotated[int, Ge(0), Le(MAX_EXTRA)] | None, Setting(aliases=("max_len_b", "max_length_b"))
    ] = None
    """Length limit of an output: this many tokens more than the input has, or in total if the input is not text. Not
    set: derived from the training texts."""

    batch_tokens: Annotated[Count, Setting(resume="free")] = 8192
    """Batch size in source tokens x beam size; changes speed and memory, never results."""

    shortlist: Annotated[int, Ge(0), Le(10_000), Setting(resume="free")] = 0
    """Size of the shortlist: a search chooses among this many likely translations of each source token, and among
    frequent tokens, numbers and punctuation marks. The likely translations are learned from the training set when
    training ends. 0: a search chooses among all tokens."""

    min_tokens: Annotated[Natural, Setting(aliases=("min_len", "min_length"), resume="free")] = 0
    """Minimum number of tokens before `<eos>` is allowed. An output may still end at its length limit."""

    no_repeat_ngram: Annotated[Count | None, Setting(resume="free")] = None
    """Length in tokens of the sequences (n-grams) that must not occur twice in an output."""

    @property
    def extra(self) -> int:
        """Value of `max_extra`, or 50 if neither the recipe nor training has set it."""
        return EXTRA if self.max_extra is None else self.max_extra


@dataclass(frozen=True, kw_only=True)
class GenerateConfig:
    """Text generation settings. Penalties and filters apply in the order of these fields; then a token is sampled."""

    max_tokens: Annotated[int, Ge(1), Le(1_000_000), Setting(aliases=("max_new_tokens",))] = 256
    """Maximum length of an output in tokens. It ends earlier if the model generates `<eos>`."""

    min_tokens: Annotated[Natural, Setting(aliases=("min_new_tokens",))] = 0
    """Minimum number of tokens before `<eos>` is allowed."""

    ignore_eos: bool = False
    """Never generate `<eos>`: an output ends at `max_tokens` or at one of the texts in `stop`."""

    repetition_penalty: Annotated[float, Ge(0.001)] = 1.0
    """Repetition penalty (Keskar et al. 2019). Above 1, tokens of the prompt and the output become less likely; 1 turns
    it off."""

    frequency_penalty: float = 0.0
    """Number subtracted from the logit of a token for each time that it occurs in the output."""

    presence_penalty: float = 0.0
    """Number subtracted once from the logit of each token that occurs in the output."""

    no_repeat_ngram: Annotated[Count | None, Setting(aliases=("no_repeat_ngram_size",))] = None
    """Length in tokens of the sequences (n-grams) that must not occur twice."""

    temperature: Annotated[NonNegative, Setting(aliases=("temp",))] = 1.0
    """Sampling temperature. Below 1: closer to the most likely token; above 1: more varied; 0: greedy decoding."""

    top_k: Count | None = None
    """Top-k sampling: sample from the k most likely tokens."""

    top_p: PositiveShare | None = None
    """Nucleus sampling (top-p): sample from the fewest tokens whose probabilities add up to p (Holtzman et al.
    2020)."""

    min_p: Rate | None = None
    """Min-p sampling: leave out tokens whose probability is less than p times that of the most likely token (Nguyen
    et al. 2024)."""

    typical: PositiveShare | None = None
    """Typical sampling: sample from the tokens whose surprisal is closest to the entropy, up to this total
    probability (Meister et al. 2023)."""

    stop: tuple[str, ...] = ()
    """Texts that end an output; they are not part of it."""

    seed: Natural = 1
    """Random seed. The same seed gives the same outputs."""

    batch_tokens: Count = 16_384
    """Batch size in prompt and output tokens; changes speed and memory, never results."""
