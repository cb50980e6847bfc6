"""A look at a parallel text: what to know before choosing a vocabulary and a model, and a fair way to split it."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from heedful.config.schema import FilterConfig
from heedful.data.corpus import Pair
from heedful.data.filters import LETTER_NAMES, is_written_in, pair_hash
from heedful.errors import InputError

SPACELESS = ("han", "kana")  # scripts that put no space between words

Part = Literal["train", "valid", "test"]


@dataclass(frozen=True)
class Side:
    """One language of a parallel text."""

    script: str | None  # in which most letters are written; None if it is none of those that filters know
    alphabet: int  # different characters
    characters: np.ndarray  # of each line, (n,)
    words: np.ndarray  # of each line, (n,): what stands between spaces

    @property
    def is_spaceless(self) -> bool:
        """Whether spaces do not tell its words apart."""
        return self.script in SPACELESS or bool(self.characters.sum() > 15 * self.words.sum())

    @property
    def tokens(self) -> np.ndarray:
        """Roughly how many tokens each line will have in a vocabulary of some thousand pieces, <eos> included, (n,)."""
        return np.ceil(0.7 * self.characters if self.is_spaceless else 1.3 * self.words) + 1


@dataclass(frozen=True)
class Survey:
    """What a parallel text looks like."""

    source: Side
    target: Side
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


class _Tally:
    """What is counted of one side, line by line."""

    def __init__(self) -> None:
        self.characters, self.words = array("I"), array("I")
        self.letters: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Take note of one text."""
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.letters.update(text)

    def side(self) -> Side:
        """What was noted."""
        return Side(main_script(self.letters), len(self.letters), np.array(self.characters), np.array(self.words))


def survey(pairs: Iterable[Pair]) -> Survey:
    """Read all pairs once; takes about 32 bytes of memory for each.

    Raises:
        InputError: there are none.
    """
    source, target = _Tally(), _Tally()
    hashes, held_out = array("Q"), array("Q")
    empty = copies = 0
    for pair in pairs:
        source.add(pair.source)
        target.add(pair.target)
        hashes.append(pair_hash(pair.source, pair.target))
        empty += not (pair.source.strip() and pair.target.strip())
        copies += pair.source == pair.target
        if can_be_held_out(pair):
            held_out.append(source_hash(pair.source))
    if not hashes:
        raise InputError("the text has no lines; give files with one sentence a line")
    repeated = len(hashes) - len(np.unique(np.array(hashes)))
    return Survey(source.side(), target.side(), empty, copies, repeated, np.unique(np.array(held_out)))


def main_script(letters: Counter[str]) -> str | None:
    """The script of at least half of the letters. Where all kana is han, as in Chinese, it is han."""
    known = {letter: count for letter, count in letters.items() if letter.isalpha()}
    counts = {
        script: sum(count for letter, count in known.items() if is_written_in(letter, script))
        for script in LETTER_NAMES
    }
    best = max(counts, key=lambda script: counts[script])
    return best if known and 2 * counts[best] >= sum(known.values()) else None


def can_be_held_out(pair: Pair) -> bool:
    """Whether a translation of the pair's source could be judged by its target."""
    texts = (pair.source, pair.target)
    return all(text.strip() and len(text) <= FilterConfig.max_characters for text in texts)


def source_hash(source: str) -> int:
    """A 64-bit hash of a source sentence."""
    return int.from_bytes(blake2b(source.encode("utf-8"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Split:
    """Which pairs are held out. The hash of the source decides, so that no sentence is trained on and tested as well.

    A pair keeps its part when others are added to the text, moved or removed, but for a few near the limits.
    """

    test_below: int
    valid_below: int

    def part(self, hashed: int) -> Part:
        """The part of a source sentence with that hash."""
        if hashed < self.test_below:
            return "test"
        return "valid" if hashed < self.valid_below else "train"

    def divide(self, pairs: Iterable[Pair]) -> Iterator[tuple[Part, Pair]]:
        """Yield each pair with its part. Of the pairs that share a held-out source only the first is yielded."""
        seen: set[int] = set()
        for pair in pairs:
            hashed = source_hash(pair.source)
            part = self.part(hashed)
            if part == "train":
                yield part, pair
            elif hashed not in seen and can_be_held_out(pair):
                seen.add(hashed)
                yield part, pair


def split(found: Survey, valid: bool, test: bool) -> Split:
    """Hold out a twentieth of the different source sentences, at most 1000, for each part that is asked for.

    Raises:
        InputError: there are too few.
    """
    size = min(1000, len(found.source_hashes) // 20)
    if size == 0:
        raise InputError(
            f"{len(found.source_hashes)} different source sentences are too few to hold some out; give at least 20"
        )
    limits = [size * test, size * test + size * valid]
    test_below, valid_below = (int(found.source_hashes[limit]) for limit in limits)
    return Split(test_below, valid_below)
