"""Parallel text: a survey, lines that do not translate each other, a split by hash, a translator's recipe."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from string import Template
from typing import Literal, TypeVar

import numpy as np

from heedful.config.schema import FilterConfig
from heedful.data.readers.corpus import SentencePair
from heedful.data.readers.filters import LETTER_NAMES, folded, is_written_in, pair_hash
from heedful.errors import InputError
from heedful.tools.proposals.proposal import (
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

SPACELESS = ("han", "kana")  # scripts that put no space between words
MOSTLY_HAN = 0.95  # of the letters of Chinese; of Japanese a third to a half is kana
MOST_CHARACTERS = FilterConfig.max_characters  # of a text that training keeps
DIGIT = re.compile(r"\d")
MAX_HELD_OUT = 1000  # texts of a part
FEWEST_GROUPS = 3  # of a class that is in all three parts
QUESTION = ("?", "？", "؟")

Part = Literal["train", "valid", "test"]

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """Statistics of one language of a parallel text, or of any other list of texts, for each line."""

    script: str | None  # the script of most letters; None if filters do not know it
    alphabet: int  # different characters
    characters: np.ndarray  # of each line, (n,)
    words: np.ndarray  # of each line, (n,): what stands between spaces
    questions: np.ndarray  # whether each line ends in a question mark, (n,)
    numbers: np.ndarray  # whether each line has a digit, (n,)

    @property
    def is_spaceless(self) -> bool:
        """True if spaces do not separate the words of the text; lines that training leaves out do not count."""
        short = self.characters <= MOST_CHARACTERS
        characters, words = (lines[short if short.any() else ~short].sum() for lines in (self.characters, self.words))
        return self.script in SPACELESS or bool(characters > 15 * words)

    @property
    def tokens(self) -> np.ndarray:
        """Estimated number of tokens of each line in a vocabulary of some thousand pieces, <eos> included, (n,)."""
        return np.ceil(0.7 * self.characters if self.is_spaceless else 1.3 * self.words) + 1


@dataclass(frozen=True)
class Survey:
    """Statistics of a parallel text: both sides, empty and repeated pairs, copies, and hashes for a split."""

    source: Side
    target: Side
    lines: np.ndarray  # the line of each pair, from 1, (n,)
    empty: int  # pairs with nothing on one side
    copies: int  # pairs of two equal sides
    repeated: int  # pairs that are copies of an earlier pair
    source_hashes: np.ndarray  # near hashes of the source sentences that can be held out; sorted, uint64

    @property
    def pairs(self) -> int:
        return len(self.source.characters)

    @property
    def longest(self) -> int:
        return int(np.maximum(self.source.characters, self.target.characters).max())

    @property
    def tokens(self) -> np.ndarray:
        """Estimated number of tokens of the longer side of each pair of lines, (n,)."""
        return np.maximum(self.source.tokens, self.target.tokens)

    @property
    def too_long(self) -> np.ndarray:
        """True for each pair that training leaves out because it has too many characters, (n,)."""
        return np.maximum(self.source.characters, self.target.characters) > MOST_CHARACTERS

    @property
    def trained_tokens(self) -> np.ndarray:
        """Estimated number of tokens of each pair that training keeps; of all pairs, if it keeps none."""
        return self.tokens if self.too_long.all() else self.tokens[~self.too_long]


class TextStatistics:
    """Collects statistics of texts, one by one: characters, words, question marks, digits, letters."""

    def __init__(self) -> None:
        self.characters, self.words = array("I"), array("I")
        self.questions, self.numbers = array("B"), array("B")
        self.letters: Counter[str] = Counter()
        self.letters_of_long: Counter[str] = Counter()  # texts that translators leave out

    def add(self, text: str) -> None:
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.questions.append(text.rstrip().endswith(QUESTION))
        self.numbers.append(DIGIT.search(text) is not None)
        letters = self.letters if len(text) <= MOST_CHARACTERS else self.letters_of_long
        letters.update(text)

    def side(self) -> Side:
        columns = (self.characters, self.words, self.questions, self.numbers)
        letters = self.letters or self.letters_of_long
        return Side(main_script(letters), len(letters), *map(np.array, columns))


def survey(pairs: Iterable[SentencePair]) -> Survey:
    """Survey a parallel text, whose pairs are read once; takes about 40 bytes of memory for each pair."""
    source, target = TextStatistics(), TextStatistics()
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
        raise InputError("the text has no lines; give files with one sentence a line")
    repeated = len(hashes) - len(np.unique(np.array(hashes)))
    hashed = np.unique(np.array(held_out))
    return Survey(source.side(), target.side(), np.array(lines), empty, copies, repeated, hashed)


def main_script(letters: Counter[str]) -> str | None:
    """The script of at least half of the letters, or None; Chinese with a few kana is han, and Japanese is kana."""
    alphabetic = {letter: count for letter, count in letters.items() if letter.isalpha()}
    counts = {
        script: sum(count for letter, count in alphabetic.items() if is_written_in(letter, script))
        for script in LETTER_NAMES
    }
    best = max(counts, key=lambda script: counts[script])
    if best == "kana" and counts["han"] > MOSTLY_HAN * counts["kana"]:
        best = "han"
    return best if alphabetic and 2 * counts[best] >= sum(alphabetic.values()) else None


def can_be_held_out(pair: SentencePair) -> bool:
    """True if a pair can be held out: neither side is blank or too long, so that the target can judge a translation."""
    texts = (pair.source, pair.target)
    return all(text.strip() and len(text) <= MOST_CHARACTERS for text in texts)


def source_hash(source: str) -> int:
    return int.from_bytes(blake2b(source.encode("utf-8"), digest_size=8).digest(), "little")


def near_hash(text: str) -> int:
    """A 64-bit hash that near copies of a text share: they differ in case, punctuation and space only."""
    return source_hash(folded(text) or text)


@dataclass(frozen=True)
class Split:
    """Split of texts into training, validation and test data by their near hashes, so that near copies stay together.

    A text keeps its part when other texts are added, moved or removed, but for a few near the limits.
    """

    test: frozenset[int]
    valid: frozenset[int]

    def part(self, hashed: int) -> Part:
        if hashed in self.test:
            return "test"
        return "valid" if hashed in self.valid else "train"

    def without(self, parts: Collection[str]) -> "Split":
        """Return the split of texts of which some parts, "valid" or "test", are not held out, as they are there."""
        return Split(frozenset() if "test" in parts else self.test, frozenset() if "valid" in parts else self.valid)

    def divide(
        self,
        items: Iterable[T],
        text_of: Callable[[T], str],
        can_be_judged: Callable[[T], bool],
        group_of: Callable[[T], int] | None = None,
        left_out: Callable[[T], object] | None = None,
    ) -> Iterator[tuple[Part, T]]:
        """Yield each item with the part of its text, "train", "valid" or "test".

        Of items that share a held-out text only the first that can be judged is yielded. `group_of` gives the hash
        that decides the part, if it is not the near hash of the text; `left_out` is called with what is not yielded.
        """
        seen: set[int] = set()
        for item in items:
            text = text_of(item)
            part = self.part(near_hash(text) if group_of is None else group_of(item))
            if part == "train":
                yield part, item
            elif (hashed := source_hash(text)) not in seen and can_be_judged(item):
                seen.add(hashed)
                yield part, item
            elif left_out:
                left_out(item)


def split(hashes: np.ndarray, valid: bool, test: bool, share: int = 20) -> Split:
    """Choose which texts to hold out: one in `share` of the different texts, at most 1000, for each part asked for."""
    size = min(MAX_HELD_OUT, len(hashes) // share)
    if size == 0:
        raise too_few(len(hashes), share)
    limits = [size * test, size * test + size * valid]
    return Split(frozenset(hashes[: limits[0]].tolist()), frozenset(hashes[limits[0] : limits[1]].tolist()))


def split_by_class(members: Mapping[int, Collection[str]], share: int, fewest: int | None = None) -> Split:
    """Choose which groups of examples to hold out so that each class is in each part, if it has three groups or more.

    Of each class one group in `share` is held out for validation and as many for the test, at least one and about
    1000 of all classes; the groups of the rarest class are chosen first. No class loses its last group for training.
    """
    if len(members) < (fewest or share):
        raise too_few(len(members), share)
    groups: dict[str, list[int]] = {}
    for group in sorted(members):
        for label in members[group]:
            groups.setdefault(label, []).append(group)
    left = Counter({label: len(of_class) for label, of_class in groups.items()})
    rate = min(1 / share, MAX_HELD_OUT / len(members))
    held_out: dict[Part, set[int]] = {"test": set(), "valid": set()}
    for of_class in sorted(groups.values(), key=len):
        size = max(1, int(rate * len(of_class))) if len(of_class) >= FEWEST_GROUPS else 0
        for part, in_part in held_out.items():
            reserve = 2 if part == "test" else 1  # groups that validation and training still need
            missing = size - sum(group in in_part for group in of_class)  # a group can hold several classes
            for group in of_class:
                free = group not in held_out["test"] and group not in held_out["valid"]
                if missing > 0 and free and all(left[label] > reserve for label in members[group]):
                    in_part.add(group)
                    left.subtract(members[group])
                    missing -= 1
    return Split(frozenset(held_out["test"]), frozenset(held_out["valid"]))


def only_trained(members: Mapping[int, Collection[str]], division: Split) -> list[str]:
    """The classes that are missing from the validation or the test part of a split, sorted."""
    parts = {"valid": set[str](), "test": set[str](), "train": set[str]()}
    for group, labels in members.items():
        parts[division.part(group)].update(labels)
    return sorted(set().union(*parts.values()) - (parts["valid"] & parts["test"]))


def too_few(count: int, share: int) -> InputError:
    return InputError(f"{count} different source texts are too few to hold some out; give at least {share}")


BLOCK = 500  # lines that are looked at together, so that a shift in the middle of a text is seen
MIN_LINES = 40  # from which anything can be concluded
RELATED = 0.3  # a correlation: of 500 lines of translations the best one is 0.8 to 1, of unrelated lines 0.1, at random


def strangers(source: Side, target: Side) -> list[tuple[int, int]]:
    """Return the ranges of lines in which the two sides of a parallel text do not seem to be translations."""
    count = len(source.characters)
    edges = np.linspace(0, count, max(1, count // BLOCK) + 1).astype(int)
    here, there = features(source), features(target)
    runs: list[tuple[int, int]] = []
    for begin, end in pairwise(edges.tolist()):
        block = zip(here[:, begin:end], there[:, begin:end], strict=True)
        varying = [(x, y) for x, y in block if np.ptp(x) > 0 and np.ptp(y) > 0]
        if end - begin < MIN_LINES or not varying:
            continue  # too little to decide
        if max(np.corrcoef(x, y)[0, 1] for x, y in varying) < RELATED:
            follows = bool(runs) and runs[-1][1] == begin
            runs.append((runs.pop()[0] if follows else begin, end))
    return runs


def features(side: Side) -> np.ndarray:
    """Return features of each line, (4, n): log(1 + characters), log(1 + words), ends with "?", has a digit."""
    return np.stack([np.log1p(side.characters), np.log1p(side.words), side.questions, side.numbers]).astype(float)


CPU_SECONDS = 4 * 3600  # the longest training without a GPU
FEWEST_PASSES = 8  # over the data; a smaller model is better than fewer
PAPER_BATCH = 25_000  # tokens in an update of the large models (Vaswani et al. 2017, section 5.1)
BATCHES = ((0, 4096), (6, 8192), (14, 16_384), (30, 32_768))  # GiB of GPU memory, tokens
SAVES = 40  # checkpoints in a run; every other time the model is validated as well
LONGEST = 8000  # characters of a text that answers are learned to
RARE = 10  # sentences, or one in a thousand: so many long sentences do not raise the limit


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


def propose_translator(survey: Survey, machine: Machine, texts: ParallelTexts) -> str:
    """Write a first recipe, in TOML, for a translator, from a survey of the parallel text and the machine."""
    languages = (
        f"source_language = {quoted(texts.source_language)}\ntarget_language = {quoted(texts.target_language)}\n"
    )
    plain = {"task": "", "languages": languages, "filters": "", "selection": ""}
    return proposed(survey, machine, texts, plain | {"seen": f"{survey.pairs:,} pairs of sentences"}, beam=4)


def propose_replies(survey: Survey, machine: Machine, task: str, texts: Texts) -> str:
    """Write a first recipe, in TOML, for replies, summaries or other answers to texts, from a survey of the pairs."""
    plain = {"task": f"task = {quoted(task)}\n", "languages": "", "filters": "", "selection": ""}
    if survey.longest > FilterConfig.max_characters:
        limit = min(LONGEST, 1000 * math.ceil(survey.longest / 1000))
        rule = (
            "of more, the oldest turns are left out" if task == "dialogue" else "longer texts are left out of training"
        )
        plain["filters"] = f"max_characters = {limit} # {rule}\n"
    if task == "text_to_text":
        plain["selection"] = 'best = "loss" # few long answers are right word for word, as exact_match counts\n'
    plain["seen"] = f"{survey.pairs:,} pairs of texts"
    return proposed(survey, machine, texts, plain, beam=1 if task == "dialogue" else 4)


def proposed(survey: Survey, machine: Machine, texts: Texts, plain: dict[str, str], beam: int) -> str:
    """Write a first recipe, in TOML, for an encoder-decoder; `plain` has the lines of one task only."""
    tokens = int(survey.trained_tokens.sum())
    size = choose_size(survey.pairs, tokens, machine)
    values = vars(size) | {"size": size.name, "max_tokens": max_tokens(survey.trained_tokens), "beam": beam}
    values |= vocabulary(survey, size) | schedule(tokens, size, machine)
    return filled(TEMPLATE, texts, values, **plain)


def choose_size(pairs: int, tokens: int, machine: Machine) -> TranslatorSize:
    """Choose the translator size that suits the amount of text, or the largest smaller one that suits the machine."""
    return choose(SIZES, pairs, machine, CPU_SECONDS, lambda size: FEWEST_PASSES * tokens * size.work)


def max_tokens(tokens: np.ndarray) -> int:
    """Choose the maximum sentence length: 250 tokens, or up to 1000 if over 0.1 % of the sentences are longer."""
    rare = max(RARE, len(tokens) // 1000)
    longest = np.sort(tokens)[::-1][min(rare, len(tokens) - 1)]
    return int(min(1000, max(250, 50 * math.ceil(longest / 50))))


def vocabulary(survey: Survey, size: TranslatorSize) -> dict[str, object]:
    """Choose tokenizer settings for a translator: one vocabulary if both sides share a script, larger for Chinese."""
    sides = (survey.source, survey.target)
    alphabet = max((side.alphabet for side in sides if side.is_spaceless), default=0)
    joint = survey.source.script == survey.target.script and survey.source.is_spaceless == survey.target.is_spaceless
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
