"""Proposes a first recipe for a translator: its size follows from the amount of text and from the machine.

"tiny" is the model of Wu et al. (2021) for 29,000 pairs, "small" between it and the usual one for the 160,000 of IWSLT;
"base" and "big" are those of Vaswani et al. (2017) for 4.5 million. Sizes between these are a start, to be changed. The
smaller models are trained as was best for the recipes multi30k-en-de and tatoeba-en-de.
"""

import math
from dataclasses import dataclass
from string import Template

import numpy as np

from heedful.config.schema import FilterConfig
from heedful.data.proposals.pair_survey import Survey
from heedful.data.proposals.proposal import (
    BEGINNING,
    Machine,
    Size,
    Texts,
    batch_size,
    choose,
    filled,
    quoted,
    save_interval,
)

CPU_SECONDS = 4 * 3600  # the longest training without a GPU
FEWEST_PASSES = 8  # over the data; a smaller model is better than fewer
PAPER_BATCH = 25_000  # tokens in an update of the large models (Vaswani et al. 2017, section 5.1)
BATCHES = ((0, 4096), (6, 8192), (14, 16_384), (30, 32_768))  # GiB of GPU memory, tokens
SAVES = 40  # checkpoints in a run; every other time the model is validated as well
LONGEST = 8000  # characters of a text that answers are learned to
RARE = 10  # sentences, or one in a thousand: so many long sentences are no reason to raise the limit


@dataclass(frozen=True)
class TranslatorSize(Size):
    """The size of an encoder-decoder, its optimiser and other training settings, for a proposed recipe."""

    vocab_size: int
    optimizer: str

    @property
    def work(self) -> float:
        """Floating-point operations to train on a source and a target token: 6 for each weight that the two meet."""
        cross_attention = 4 * self.d_model**2
        return 6.0 * (self.layers * (2 * self.block + cross_attention) + self.vocab_size * self.d_model)


SIZES = (
    TranslatorSize("tiny", 60_000, 128, 256, 4, 4, 0.3, 8e-3, 400, 40, 4000, "muon"),
    TranslatorSize("small", 1_000_000, 256, 1024, 4, 4, 0.2, 5e-3, 400, 20, 8000, "muon"),
    TranslatorSize("base", 10_000_000, 512, 2048, 8, 6, 0.1, 7e-4, 4000, 25, 32_000, "adam", gpu_memory=6),
    TranslatorSize("big", math.inf, 1024, 4096, 16, 6, 0.1, 5e-4, 4000, 12, 32_000, "adam", gpu_memory=30),
)


@dataclass(frozen=True)
class ParallelTexts(Texts):
    """Recipe name, languages, corpora and handling of bad UTF-8 for a proposed recipe of a translator."""

    source_language: str
    target_language: str


def propose_translator(found: Survey, machine: Machine, texts: ParallelTexts) -> str:
    """Write a first recipe, in TOML, for a translator, from a survey of the parallel text and the machine."""
    languages = (
        f"source_language = {quoted(texts.source_language)}\ntarget_language = {quoted(texts.target_language)}\n"
    )
    plain = {"task": "", "languages": languages, "filters": "", "selection": ""}
    return proposed(found, machine, texts, plain | {"seen": f"{found.pairs:,} pairs of sentences"}, beam=4)


def propose_replies(found: Survey, machine: Machine, task: str, texts: Texts) -> str:
    """Write a first recipe, in TOML, for replies, summaries or other answers to texts, from a survey of the pairs."""
    plain = {"task": f"task = {quoted(task)}\n", "languages": "", "filters": "", "selection": ""}
    if found.longest > FilterConfig.max_characters:
        limit = min(LONGEST, 1000 * math.ceil(found.longest / 1000))
        rule = (
            "of more, the oldest turns are left out" if task == "dialogue" else "longer texts are left out of training"
        )
        plain["filters"] = f"max_characters = {limit} # {rule}\n"
    if task == "text_to_text":
        plain["selection"] = 'best = "loss" # few long answers are right word for word, as exact_match counts\n'
    plain["seen"] = f"{found.pairs:,} pairs of texts"
    return proposed(found, machine, texts, plain, beam=1 if task == "dialogue" else 4)


def proposed(found: Survey, machine: Machine, texts: Texts, plain: dict[str, str], beam: int) -> str:
    """Write a first recipe, in TOML, for an encoder-decoder; `plain` has the lines of one task only."""
    tokens = int(found.trained_tokens.sum())
    size = choose_size(found.pairs, tokens, machine)
    values = vars(size) | {"size": size.name, "max_tokens": max_tokens(found.trained_tokens), "beam": beam}
    values |= vocabulary(found, size) | schedule(tokens, size, machine)
    return filled(TEMPLATE, texts, values, **plain)


def choose_size(pairs: int, tokens: int, machine: Machine) -> TranslatorSize:
    """Choose the translator size that suits the amount of text, or the largest smaller one that suits the machine."""
    return choose(SIZES, pairs, machine, CPU_SECONDS, lambda size: FEWEST_PASSES * tokens * size.work)


def max_tokens(tokens: np.ndarray) -> int:
    """Choose the maximum sentence length: 250 tokens, or up to 1000 if over 0.1 % of the sentences are longer."""
    rare = max(RARE, len(tokens) // 1000)
    longest = np.sort(tokens)[::-1][min(rare, len(tokens) - 1)]
    return int(min(1000, max(250, 50 * math.ceil(longest / 50))))


def vocabulary(found: Survey, size: TranslatorSize) -> dict[str, object]:
    """Choose tokenizer settings for a translator: one vocabulary if both sides share a script, larger for Chinese."""
    sides = (found.source, found.target)
    alphabet = max((side.alphabet for side in sides if side.is_spaceless), default=0)
    joint = found.source.script == found.target.script and found.source.is_spaceless == found.target.is_spaceless
    return {
        "vocab_size": max(size.vocab_size, 1000 * math.ceil(2 * alphabet / 1000)),
        "joint": joint,
        "tie": "all" if joint else "output",
    }


def schedule(tokens: int, size: TranslatorSize, machine: Machine) -> dict[str, object]:
    """Choose batch size and number of updates for a translator; little text gets smaller batches, not few updates."""
    most = max(batch for memory, batch in BATCHES if memory <= (machine.gpu_memory or 0))
    batch = batch_size(tokens, 50, most)
    accumulate = max(1, round(PAPER_BATCH / batch)) if size.gpu_memory else 1
    trained = min(size.passes * tokens, machine.budget(CPU_SECONDS) / size.work)
    save_every = save_interval(trained / (batch * accumulate), SAVES)
    return {
        "batch_tokens": batch,
        "accumulate": accumulate,
        "max_updates": SAVES * save_every,
        "warmup": min(size.warmup, 4 * save_every),
        "save_every": save_every,
        "validate_every": 2 * save_every,
        "passes": round(SAVES * save_every * batch * accumulate / tokens),
    }


TEMPLATE = Template(
    BEGINNING
    + """\
name = $name
$task
[data]
${languages}bad_utf8 = $bad_utf8

$corpora

[data.filters]
${filters}max_tokens = $max_tokens # longer sentences are left out of training

[tokenizer]
vocab_size = $vocab_size # an upper bound; with more text more pieces are worth having
joint = $joint # whether both sides share one vocabulary

[model] # of the size $size
d_model = $d_model
d_ff = $d_ff
heads = $heads
encoder_layers = $layers
decoder_layers = $layers
norm = "pre" # trains at any depth; "post" is the paper's
positions = "rotary" # learns faster; for `heedful convert --to marian` "sinusoidal", with norm = "post" and tie = "all"
dropout = $dropout # the less text, the more dropout
tie = $tie

[optimizer]
name = $optimizer
schedule = "linear" # the rate falls to 0 at max_updates, and most is learned on the way
lr = $lr # if the loss jumps, halve it
warmup = $warmup

[train]
max_updates = $max_updates # about $passes passes over the data
batch_tokens = $batch_tokens # if memory runs out, halve it and double accumulate
accumulate = $accumulate
validate_every = $validate_every
save_every = $save_every
keep_last = 5
average_last = 5 # the final model is the mean of the last five checkpoints, unless a single one is better
$selection
[decode]
beam = $beam
"""
)
