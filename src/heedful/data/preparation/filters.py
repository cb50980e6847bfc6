"""Filters of training pairs by length, length ratio, script and repetition: each dropped pair has one reason.

Text filters run on the raw lines, before the tokenizer; token filters run on the encoded pair.
"""

import hashlib
import unicodedata
from array import array
from collections import Counter
from functools import cache

from heedful.config.schema import FilterConfig
from heedful.data.readers.drop_report import Reason

# The first words of the Unicode names of a script's letters. Japanese mixes kana and han, so "kana" includes both.
LETTER_NAMES = {
    "latin": ("LATIN",),
    "cyrillic": ("CYRILLIC",),
    "greek": ("GREEK",),
    "arabic": ("ARABIC",),
    "hebrew": ("HEBREW",),
    "han": ("CJK", "IDEOGRAPHIC"),
    "kana": ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC"),
    "hangul": ("HANGUL",),
}


class PairFilter:
    """Filter that decides which sentence pairs to drop.

    Unless the settings keep duplicates, it remembers the pairs that pass the text filters, so that one filter for all
    corpora also finds duplicates across them.
    """

    def __init__(self, config: FilterConfig) -> None:
        self.config = config
        self._pairs = HashSet()

    def text_reason(self, source: str, target: str) -> Reason | None:
        """Return the reason for dropping a pair of raw texts, or None.

        A pair that passes is remembered, unless duplicates are kept.
        """
        config = self.config
        if not source.strip():
            return "empty source"
        if not target.strip():
            return "empty target"
        if max(len(source), len(target)) > config.max_characters:
            return "too many characters"
        scripts = ((source, config.source_script), (target, config.target_script))
        if any(script is not None and not is_written_in(text, script) for text, script in scripts):
            return "wrong script"
        # This check is the last, so that only pairs that pass the others are remembered.
        if not config.duplicates and not self._pairs.add(pair_hash(source, target)):
            return "duplicate"
        return None

    def token_reason(self, source: int, target: int) -> Reason | None:
        """Return the reason for dropping a pair with `source` and `target` tokens, <eos> included, or None."""
        shorter, longer = sorted((source, target))
        if longer > self.config.max_tokens:
            return "too many tokens"
        if self.config.max_ratio is not None and longer > self.config.max_ratio * shorter:
            return "length ratio"
        return None


class HashSet:
    """Set of 64-bit hashes in one flat table, with 12 to 24 bytes per entry: a fifth of a Python set of integers.

    Open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> bool:
        """Add a hash below 2^64 to the set; return False if it is already in the set."""
        value = value or 1  # 0 marks an empty slot
        index = self._slot_of(value)
        if self._slots[index] == value:
            return False
        self._slots[index] = value
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            # Double the table, because longer runs of full slots would make lookups slow.
            values = self._slots
            self._slots = array("Q", bytes(2 * 8 * len(values)))
            for entry in filter(None, values):
                self._slots[self._slot_of(entry)] = entry
        return True

    def _slot_of(self, value: int) -> int:
        slots, last = self._slots, len(self._slots) - 1
        index = value & last
        while slots[index] not in (0, value):
            index = (index + 1) & last
        return index


def pair_hash(source: str, target: str, key: str = "") -> int:
    """Return a 64-bit hash of a sentence pair: among a million distinct pairs, a collision has probability 3e-8.

    Hashes with different keys are independent.
    """
    # The length distinguishes pairs such as ("ab", "c") and ("a", "bc").
    text = f"{len(source)}:{source}{target}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=key.encode()).digest(), "little")


def is_written_in(text: str, script: str) -> bool:
    """Return True if at least half of the letters of `text` belong to `script`, or if `text` has no letters."""
    # Looking up a Unicode name is slow, so each distinct letter is looked up once.
    letters = {letter: count for letter, count in Counter(text).items() if letter.isalpha()}
    in_script = sum(count for letter, count in letters.items() if _belongs(letter, script))
    return 2 * in_script >= sum(letters.values())


@cache
def _belongs(letter: str, script: str) -> bool:
    name = unicodedata.name(letter, "").removeprefix("HALFWIDTH ").removeprefix("FULLWIDTH ")
    return name.startswith(LETTER_NAMES[script])
