"""Parallel text: a survey, detection of misaligned lines, and recipes for translators and reply models."""

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from heedful.data.preparation.filters import pair_hash
from heedful.data.readers.corpus import SentencePair
from heedful.errors import InputError
from heedful.tools.proposals.proposal import (
    HEADER,
    Machine,
    RecipeData,
    Size,
    batch_size,
    fill_template,
    fitting_size,
    schedule,
    toml_value,
)
from heedful.tools.proposals.splits import near_hash
from heedful.tools.proposals.text_statistics import MAX_CHARACTERS, StatisticsBuilder, TextStatistics


@dataclass(frozen=True)
class ParallelSurvey:
    """Statistics of a parallel text: both sides, empty and repeated pairs, copies, and hashes for a split."""

    source: TextStatistics
    target: TextStatistics
    lines: np.ndarray  # the line of each pair, from 1, (n,)
    empty: int  # number of pairs with an empty side
    copies: int  # number of pairs whose two sides are equal
    repeated: int  # number of pairs that repeat an earlier pair
    source_hashes: np.ndarray  # near hashes of the source sentences that can be held out; sorted, uint64

    @property
    def pairs(self) -> int:
        return len(self.source.characters)

    @property
    def characters(self) -> np.ndarray:
        """Number of characters of the longer side of each pair, (n,)."""
        return np.maximum(self.source.characters, self.target.characters)

    @property
    def tokens(self) -> np.ndarray:
        """Estimated number of tokens of the longer side of each pair, (n,)."""
        return np.maximum(self.source.tokens, self.target.tokens)

    @property
    def too_long(self) -> np.ndarray:
        """True for each pair that training leaves out because it has too many characters, (n,)."""
        return self.characters > MAX_CHARACTERS

    @property
    def trained_tokens(self) -> np.ndarray:
        """Estimated number of tokens of each pair that training keeps; of all pairs, if it keeps none."""
        return self.tokens if self.too_long.all() else self.tokens[~self.too_long]


def survey_parallel(pairs: Iterable[SentencePair], name: str = "the text") -> ParallelSurvey:
    """Survey a parallel text in one pass over its pairs, with about 40 bytes of memory per pair.

    `name` is the name of the text in an error message.
    """
    source, target = StatisticsBuilder(), StatisticsBuilder()
    lines, hashes, held_out = array("I"), array("Q"), array("Q")
    empty = copies = 0
    for pair in pairs:
        source.add(pair.source)
        target.add(pair.target)
        lines.append(pair.line)
        hashes.append(pair_hash(pair.source, pair.target))
        empty += not (pair.source.strip() and pair.target.strip())
        copies += pair.source == pair.target
        if can_be_held_out(pair):
            held_out.append(near_hash(pair.source))
    if not hashes:
        raise InputError(f"{name} has no lines; give files with one sentence per line")
    repeated = len(hashes) - len(np.unique(np.array(hashes)))
    held_out_hashes = np.unique(np.array(held_out))
    return ParallelSurvey(source.build(), target.build(), np.array(lines), empty, copies, repeated, held_out_hashes)


def can_be_held_out(pair: SentencePair) -> bool:
    """Return True if neither side is blank or too long, so that the target can be a reference for translations."""
    return all(text.strip() and len(text) <= MAX_CHARACTERS for text in (pair.source, pair.target))


BLOCK = 500  # lines compared together, so that a shift in the middle of a text is noticed
MIN_LINES = 40  # fewer lines do not allow a conclusion
# Minimum correlation: over 500 lines, the best feature has 0.8 to 1 for translations, and 0.1 for unrelated lines.
RELATED = 0.3


def misaligned_lines(source: TextStatistics, target: TextStatistics) -> list[tuple[int, int]]:
    """Return the ranges of pairs, from 0, in which the sides of a parallel text do not seem to translate each other."""

    def features(side: TextStatistics) -> np.ndarray:  # (4, n)
        lengths = (np.log1p(side.characters), np.log1p(side.words))
        return np.stack([*lengths, side.questions, side.numbers]).astype(float)

    count = len(source.characters)
    edges = np.linspace(0, count, max(1, count // BLOCK) + 1).astype(int)
    source_features, target_features = features(source), features(target)
    ranges: list[tuple[int, int]] = []
    for begin, end in pairwise(edges.tolist()):
        rows = zip(source_features[:, begin:end], target_features[:, begin:end], strict=True)
        varying = [(x, y) for x, y in rows if np.ptp(x) > 0 and np.ptp(y) > 0]
        if end - begin < MIN_LINES or not varying:
            continue  # too little to decide
        if max(np.corrcoef(x, y)[0, 1] for x, y in varying) < RELATED:
            follows = bool(ranges) and ranges[-1][1] == begin
            ranges.append((ranges.pop()[0] if follows else begin, end))
    return ranges


CPU_SECONDS = 4 * 3600  # the longest training without a GPU
MIN_PASSES = 8  # epochs; a smaller model is better than fewer epochs
PAPER_BATCH = 25_000  # tokens per update of the large models (Vaswani et al. 2017, section 5.1)
BATCHES = ((0, 4096), (6, 8192), (14, 16_384), (30, 32_768))  # minimum GiB of GPU memory, maximum tokens per batch
SAVES = 40  # checkpoints in a run; the model is validated at every second one
MAX_REPLY_CHARACTERS = 8000  # in a text that the model learns to reply to
RARE = 10  # this many long sentences, or one in a thousand, do not raise the limit


@dataclass(frozen=True)
class TranslatorSize(Size):
    vocab_size: int
    optimizer: str

    @property
    def work(self) -> float:
        """Floating-point operations to train on a source and a target token: 6 for each weight that they use."""
        cross_attention = 4 * self.d_model**2
        return 6.0 * (self.layers * (2 * self.block + cross_attention) + self.vocab_size * self.d_model)


SIZES = (
    TranslatorSize("tiny", 60_000, 128, 256, 4, 4, 0.3, 8e-3, 400, 40, 4000, "muon"),
    TranslatorSize("small", 1_000_000, 256, 1024, 4, 4, 0.2, 5e-3, 400, 20, 8000, "muon"),
    TranslatorSize("base", 10_000_000, 512, 2048, 8, 6, 0.1, 7e-4, 4000, 25, 32_000, "adam", gpu_memory=6),
    TranslatorSize("big", math.inf, 1024, 4096, 16, 6, 0.1, 5e-4, 4000, 12, 32_000, "adam", gpu_memory=30),
)


@dataclass(frozen=True)
class Shape:
    """Shape of an encoder-decoder, and its search settings."""

    decoder_layers: int | None  # None for as many as the encoder; otherwise, the encoder has twice as many as usual
    beam: int
    search: str  # further lines of [decode]


EVEN = Shape(None, 4, "")
GREEDY = Shape(None, 1, "")
# A decoder layer runs once for each output token, an encoder layer once for each sentence.
FAST = Shape(
    1, 1, "shortlist = 50 # the search chooses among likely translations of the source tokens; 0: among all tokens\n"
)


def propose_translator(
    survey: ParallelSurvey, machine: Machine, data: RecipeData, languages: tuple[str, str], shape: Shape = EVEN
) -> str:
    """Write a first recipe, in TOML, for a translator."""
    keys = "source_language = {}\ntarget_language = {}\n".format(*map(toml_value, languages))
    return propose_encoder_decoder(
        survey, machine, data, shape, content=f"{survey.pairs:,} sentence pairs", languages=keys
    )


def propose_replies(survey: ParallelSurvey, machine: Machine, task: str, data: RecipeData) -> str:
    """Write a first recipe, in TOML, for replies, summaries or other answers to texts."""
    lines = {"task": f"task = {toml_value(task)}\n", "content": f"{survey.pairs:,} text pairs"}
    if (longest := int(survey.characters.max())) > MAX_CHARACTERS:
        limit = min(MAX_REPLY_CHARACTERS, 1000 * math.ceil(longest / 1000))
        is_dialogue = task == "dialogue"
        rule = "beyond it, the oldest turns are left out" if is_dialogue else "longer texts are left out of training"
        lines["filters"] = f"max_characters = {limit} # {rule}\n"
    if task == "text_to_text":
        lines["selection"] = 'best = "loss" # few long answers are correct word for word, as exact_match requires\n'
    return propose_encoder_decoder(survey, machine, data, GREEDY if task == "dialogue" else EVEN, **lines)


def propose_encoder_decoder(
    survey: ParallelSurvey, machine: Machine, data: RecipeData, shape: Shape, **lines: str
) -> str:
    tokens = int(survey.trained_tokens.sum())
    size = translator_size(survey.pairs, tokens, machine)

    # Little text means smaller batches rather than fewer updates.
    most = max(batch for memory, batch in BATCHES if memory <= (machine.gpu_memory or 0))
    batch = batch_size(tokens, 50, most)
    accumulate = max(1, round(PAPER_BATCH / batch)) if size.gpu_memory else 1
    trained_tokens = min(size.passes * tokens, machine.budget(CPU_SECONDS) / size.work)
    values = schedule(size, trained_tokens / (batch * accumulate), tokens / (batch * accumulate), SAVES)
    every = values["every"]
    values |= {"validate_every": 2 * every, "warmup": min(size.warmup, 4 * every)}

    # One vocabulary if both sides share a script; a larger one for scripts of many characters, such as Chinese.
    sides = (survey.source, survey.target)
    alphabet = max((side.alphabet for side in sides if side.is_spaceless), default=0)
    joint = survey.source.script == survey.target.script and survey.source.is_spaceless == survey.target.is_spaceless
    values |= {
        "vocab_size": max(size.vocab_size, 1000 * math.ceil(2 * alphabet / 1000)),
        "joint": joint,
        "tie": "all" if joint else "output",
        "batch_tokens": batch,
        "accumulate": accumulate,
        "beam": shape.beam,
        "encoder_layers": size.layers if shape.decoder_layers is None else 2 * size.layers,
        "decoder_layers": shape.decoder_layers or size.layers,
    }

    # Sentences have at most 250 tokens, or up to 1000 if more than `RARE` of them, and more than 0.1%, are longer.
    lengths = np.sort(survey.trained_tokens)[::-1]
    longest = lengths[min(max(RARE, len(lengths) // 1000), len(lengths) - 1)]
    values["max_tokens"] = int(min(1000, max(250, 50 * math.ceil(longest / 50))))
    lines = {"task": "", "languages": "", "filters": "", "selection": "", "search": shape.search} | lines
    return fill_template(TEMPLATE, data, values, **lines)


def translator_size(pairs: int, tokens: int, machine: Machine) -> TranslatorSize:
    """Choose the size for an amount of text, or the largest smaller one that the machine can train in time."""
    return fitting_size(SIZES, pairs, machine, CPU_SECONDS, lambda size: MIN_PASSES * tokens * size.work)


TEMPLATE = (
    HEADER
    + """\
name = $name
$task
[data]
${languages}bad_utf8 = $bad_utf8

$corpora

[data.filters]
${filters}max_tokens = $max_tokens # longer sentences are left out of training

[tokenizer]
vocab_size = $vocab_size # an upper bound; larger corpora benefit from a larger vocabulary
joint = $joint # whether both sides share one vocabulary

[model] # of the size $size
d_model = $d_model
d_ff = $d_ff
heads = $heads
encoder_layers = $encoder_layers
decoder_layers = $decoder_layers
norm = "pre" # trains at any depth; "post" is the paper's
positions = "rotary" # learns faster; for `heedful convert --to marian`: "sinusoidal", norm = "post" and tie = "all"
dropout = $dropout # the less text, the more dropout
tie = $tie

[optimizer]
name = $optimizer
schedule = "linear" # the learning rate decays to 0 at max_updates
lr = $lr # if the loss jumps, halve it
warmup = $warmup

[train]
max_updates = $max_updates # about $passes epochs
batch_tokens = $batch_tokens # if memory runs out, halve it and double accumulate
accumulate = $accumulate
validate_every = $validate_every
save_every = $every
keep_last = 5
average_last = 5 # the final model is the mean of the last five checkpoints, unless a single one is better
$selection
[decode]
beam = $beam
$search"""
)
