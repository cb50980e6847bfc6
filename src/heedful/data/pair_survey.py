"""A look at a parallel text: what to know before choosing a vocabulary and a model, and a fair way to split it."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeVar

import numpy as np

from heedful.config.schema import FilterConfig
from heedful.data.corpus import SentencePair
from heedful.data.filters import LETTER_NAMES, is_written_in, pair_hash
from heedful.errors import InputError

SPACELESS = ("han", "kana")  # scripts that put no space between words
MOSTLY_HAN = 0.95  # of the letters of Chinese; of Japanese a third to a half is kana
MOST_CHARACTERS = FilterConfig.max_characters  # of a text that training keeps
DIGIT = re.compile(r"\d")
QUESTION = ("?", "？", "؟")

Part = Literal["train", "valid", "test"]

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """One language of a parallel text, or any other list of texts."""

    script: str | None  # in which most letters are written; None if it is none of those that filters know
    alphabet: int  # different characters
    characters: np.ndarray  # of each line, (n,)
    words: np.ndarray  # of each line, (n,): what stands between spaces
    questions: np.ndarray  # whether each line ends in a question mark, (n,)
    numbers: np.ndarray  # whether each line has a digit, (n,)

    @property
    def is_spaceless(self) -> bool:
        """Whether spaces do not tell its words apart; lines that training leaves out do not count."""
        kept = self.characters <= MOST_CHARACTERS
        characters, words = (lines[kept if kept.any() else ~kept].sum() for lines in (self.characters, self.words))
        return self.script in SPACELESS or bool(characters > 15 * words)

    @property
    def tokens(self) -> np.ndarray:
        """Roughly how many tokens each line will have in a vocabulary of some thousand pieces, <eos> included, (n,)."""
        return np.ceil(0.7 * self.characters if self.is_spaceless else 1.3 * self.words) + 1


@dataclass(frozen=True)
class Survey:
    """What a parallel text looks like."""

    source: Side
    target: Side
    lines: np.ndarray  # the line of each pair, from 1, (n,)
    empty: int  # pairs with nothing on one side
    copies: int  # pairs of two equal sides
    repeated: int  # pairs that have stood there before
    source_hashes: np.ndarray  # of the different source sentences that can be held out; sorted, uint64

    @property
    def pairs(self) -> int:
        """The number of lines."""
        return len(self.source.characters)

    @property
    def tokens(self) -> np.ndarray:
        """Roughly the tokens of the longer side of each pair, (n,)."""
        return np.maximum(self.source.tokens, self.target.tokens)

    @property
    def too_long(self) -> np.ndarray:
        """Whether training leaves each pair out for its characters, (n,)."""
        return np.maximum(self.source.characters, self.target.characters) > MOST_CHARACTERS

    @property
    def trained_tokens(self) -> np.ndarray:
        """The tokens of the pairs that training keeps; of all, if it keeps none."""
        return self.tokens if self.too_long.all() else self.tokens[~self.too_long]


class TextStatistics:
    """What is counted of texts, one by one."""

    def __init__(self) -> None:
        self.characters, self.words = array("I"), array("I")
        self.questions, self.numbers = array("B"), array("B")
        self.letters: Counter[str] = Counter()
        self.letters_of_long: Counter[str] = Counter()  # texts that translators leave out

    def add(self, text: str) -> None:
        """Take note of one text."""
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.questions.append(text.rstrip().endswith(QUESTION))
        self.numbers.append(DIGIT.search(text) is not None)
        letters = self.letters if len(text) <= MOST_CHARACTERS else self.letters_of_long
        letters.update(text)

    def side(self) -> Side:
        """What was noted."""
        columns = (self.characters, self.words, self.questions, self.numbers)
        letters = self.letters or self.letters_of_long
        return Side(main_script(letters), len(letters), *map(np.array, columns))


def survey(pairs: Iterable[SentencePair]) -> Survey:
    """Read all pairs once; takes about 40 bytes of memory for each.

    Raises:
        InputError: there are none.
    """
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
            held_out.append(source_hash(pair.source))
    if not hashes:
        raise InputError("the text has no lines; give files with one sentence a line")
    repeated = len(hashes) - len(np.unique(np.array(hashes)))
    hashed = np.unique(np.array(held_out))
    return Survey(source.side(), target.side(), np.array(lines), empty, copies, repeated, hashed)


def main_script(letters: Counter[str]) -> str | None:
    """The script of at least half of the letters; Chinese with a few kana in it is han, and Japanese is kana."""
    known = {letter: count for letter, count in letters.items() if letter.isalpha()}
    counts = {
        script: sum(count for letter, count in known.items() if is_written_in(letter, script))
        for script in LETTER_NAMES
    }
    best = max(counts, key=lambda script: counts[script])
    if best == "kana" and counts["han"] > MOSTLY_HAN * counts["kana"]:
        best = "han"
    return best if known and 2 * counts[best] >= sum(known.values()) else None


def can_be_held_out(pair: SentencePair) -> bool:
    """Whether a translation of the pair's source could be judged by its target."""
    texts = (pair.source, pair.target)
    return all(text.strip() and len(text) <= MOST_CHARACTERS for text in texts)


def source_hash(source: str) -> int:
    """A 64-bit hash of a source sentence."""
    return int.from_bytes(blake2b(source.encode("utf-8"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Split:
    """Which texts are held out. The hash of a text decides, so that none is trained on and tested as well.

    A text keeps its part when others are added, moved or removed, but for a few near the limits.
    """

    test_below: int
    valid_below: int

    def part(self, hashed: int) -> Part:
        """The part of a text with that hash."""
        if hashed < self.test_below:
            return "test"
        return "valid" if hashed < self.valid_below else "train"

    def divide(
        self, items: Iterable[T], text_of: Callable[[T], str], can_be_judged: Callable[[T], bool]
    ) -> Iterator[tuple[Part, T]]:
        """Yield each item with the part of its text. Of items that share a held-out text only the first is yielded."""
        seen: set[int] = set()
        for item in items:
            hashed = source_hash(text_of(item))
            part = self.part(hashed)
            if part == "train":
                yield part, item
            elif hashed not in seen and can_be_judged(item):
                seen.add(hashed)
                yield part, item


def split(hashes: np.ndarray, valid: bool, test: bool, share: int = 20) -> Split:
    """Hold out one in `share` of the different texts, at most 1000, for each part that is asked for.

    Args:
        hashes: Of the different texts that can be held out, sorted, uint64, (n,).
        valid: Whether to hold out validation text.
        test: Whether to hold out test text.
        share: How many texts there are for each that is held out for one part.

    Raises:
        InputError: there are too few.
    """
    size = min(1000, len(hashes) // share)
    if size == 0:
        raise InputError(f"{len(hashes)} different source texts are too few to hold some out; give at least {share}")
    limits = [size * test, size * test + size * valid]
    test_below, valid_below = (int(hashes[limit]) for limit in limits)
    return Split(test_below, valid_below)
