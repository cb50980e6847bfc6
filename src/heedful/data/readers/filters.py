"""Filters of training pairs: every dropped pair is counted under one reason.

Text filters run on the raw lines, before the tokenizer sees them; token filters run on the encoded pair.
"""

import hashlib
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Self, get_args

from heedful.config.schema import FilterConfig
from heedful.text.coverage import UnknownTokens

NO_LETTER = re.compile(r"[\W_]+")

Reason = Literal[
    "header",  # a first row that names columns, none of which the recipe asks for by name
    "bad UTF-8",
    "bad file",  # an image or a sound that cannot be read
    "being a run, model or recipe folder",  # which heedful, not the user, put below the folder that is read
    "empty source",
    "empty target",
    "empty label",
    "too many characters",
    "wrong script",
    "duplicate",
    "too many tokens",
    "length ratio",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

MUCH_LEFT_OUT = 0.1  # the share of examples that are left out from which it is pointed out

_FILL = "fill them in, or check that the right column or file is read"
REMEDIES: dict[Reason, str] = {  # for examples that are left out; headers and folders are not examples
    "bad UTF-8": "convert the file to UTF-8, as with iconv",
    "bad file": "save these files again, or take them out",
    "empty source": _FILL,
    "empty target": _FILL,
    "empty label": _FILL,
    "too many characters": "raise data.filters.max_characters to keep them",
    "wrong script": "check data.filters.source_script and target_script, and that the right file is read",
    "duplicate": "data.filters.duplicates = true keeps them",
    "too many tokens": "raise data.filters.max_tokens to keep them",
    "length ratio": "check that line n of one side belongs to line n of the other, or raise data.filters.max_ratio",
}

Remark = Literal["cut", "empty", "silent"]  # longer than data.max_length; without text; a sound of nothing
REMARKS: tuple[Remark, ...] = get_args(Remark)

# The first words of the Unicode names of a script's letters. Japanese writes kana and han in one sentence.
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


@dataclass
class DropReport:
    """Counts of pairs that were dropped for each reason, or kept with a remark, with the place of the first one."""

    counts: dict[Reason | Remark, int] = field(default_factory=dict)
    examples: dict[Reason | Remark, str] = field(default_factory=dict)
    tokens: dict[str, UnknownTokens] = field(default_factory=dict)  # by what was counted: "target tokens of train.de"
    bad_files: list[str] = field(default_factory=list, compare=False)  # what is wrong with each; not stored

    def drop(self, reason: Reason, name: str, line: int | None) -> None:
        """Count one dropped pair that stands in file `name` at `line`, counted from 1; None: the file itself."""
        self._count(reason, name, line)

    def remark(self, remark: Remark, name: str, line: int | None) -> None:
        self._count(remark, name, line)

    def count_tokens(self, name: str, ids: Sequence[int]) -> None:
        self.tokens.setdefault(name, UnknownTokens()).count(ids)

    def merge(self, other: Self) -> None:
        """Add the counts of another drop report; the place of the first pair stays the first one met."""
        for name, counts in other.tokens.items():
            total = self.tokens.setdefault(name, UnknownTokens())
            total.tokens, total.unknown = total.tokens + counts.tokens, total.unknown + counts.unknown
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            self.examples.setdefault(reason, other.examples[reason])
        self.bad_files += other.bad_files

    def rows(self) -> list[tuple[Reason, int, str]]:
        """Return (reason, count, place of the first dropped pair), in the order in which the filters run."""
        return [(reason, self.counts[reason], self.examples[reason]) for reason in REASONS if reason in self.counts]

    def remarks(self) -> list[tuple[Remark, int, str]]:
        """Return (remark, count, place of the first example) for examples that were kept although odd."""
        return [(remark, self.counts[remark], self.examples[remark]) for remark in REMARKS if remark in self.counts]

    def __str__(self) -> str:
        rows = self.rows()
        dropped = [f"{count:,} for {reason} (first: {example})" for reason, count, example in rows]
        return f"{sum(count for _, count, _ in rows):,} dropped" + (": " + ", ".join(dropped) if dropped else "")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return counts of dropped and odd examples by reason, with the place of the first, as JSON-ready values."""
        rows = [*self.rows(), *self.remarks()]
        return {reason: {"count": count, "first": example} for reason, count, example in rows}

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]], tokens: dict[str, dict[str, int]] | None = None) -> Self:
        """Return the drop report that `to_dict` turned into JSON-ready values, with counts of tokens by their names."""
        reasons: list[Reason | Remark] = [reason for reason in (*REASONS, *REMARKS) if reason in values]
        return cls(
            counts={reason: values[reason]["count"] for reason in reasons},
            examples={reason: values[reason]["first"] for reason in reasons},
            tokens={name: UnknownTokens(**counts) for name, counts in (tokens or {}).items()},
        )

    def _count(self, reason: Reason | Remark, name: str, line: int | None) -> None:
        self.examples.setdefault(reason, name if line is None else f"{name}, line {line}")
        self.counts[reason] = self.counts.get(reason, 0) + 1


def left_out_line(drops: DropReport, kept: int) -> str | None:
    """Say with the remedy that many lines are left out of `kept` and these together; None where it is not many."""
    rows = [row for row in drops.rows() if row[0] in REMEDIES]
    total = sum(count for _, count, _ in rows)
    if not rows or total < MUCH_LEFT_OUT * (kept + total):
        return None
    reason, count, first = max(rows, key=lambda row: row[1])
    what = f"{total / (kept + total):.0%} of the examples are left out, {count:,} of them for {reason}"
    return f"{what} (first: {first}); {REMEDIES[reason]}"


class PairFilter:
    """Tells which sentence pairs to drop and why. It remembers the pairs it saw: one filter serves all corpora."""

    def __init__(self, config: FilterConfig) -> None:
        self.config = config
        self._pairs = HashSet()

    def text_reason(self, source: str, target: str) -> Reason | None:
        """Return the reason to drop a pair of raw texts, or None; once a pair passed, it counts as seen."""
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
        # Last, so that only a pair that passes the other filters counts as met before.
        if not config.duplicates and not self._pairs.add(pair_hash(source, target)):
            return "duplicate"
        return None

    def token_reason(self, source: int, target: int) -> Reason | None:
        """Return the reason to drop a pair with `source` and `target` tokens, <eos> included, or None to keep it."""
        shorter, longer = sorted((source, target))
        if longer > self.config.max_tokens:
            return "too many tokens"
        if self.config.max_ratio is not None and longer > self.config.max_ratio * shorter:
            return "length ratio"
        return None


class HashSet:
    """A set of 64-bit hashes in one flat table: 12 to 24 bytes an entry, a fifth of a Python set of integers.

    Open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> bool:
        """Add a hash below 2^64 to the set; False if the set had it before."""
        value = value or 1  # an empty slot is a zero
        index = self._slot_of(value)
        if self._slots[index] == value:
            return False
        self._slots[index] = value
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            # Longer runs of full slots would make each look-up slow.
            values = self._slots
            self._slots = array("Q", bytes(2 * 8 * len(values)))
            for moved in filter(None, values):
                self._slots[self._slot_of(moved)] = moved
        return True

    def _slot_of(self, value: int) -> int:
        slots, last = self._slots, len(self._slots) - 1
        index = value & last
        while slots[index] not in (0, value):
            index = (index + 1) & last
        return index


def pair_hash(source: str, target: str) -> int:
    """Return a 64-bit hash of a sentence pair: a million different pairs hold a collision with probability 3e-8."""
    text = f"{len(source)}:{source}{target}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def folded(text: str) -> str:
    """Fold a text to find near duplicates: without case, punctuation and space."""
    return NO_LETTER.sub("", text.casefold())


def is_written_in(text: str, script: str) -> bool:
    """True if at least half of the letters of `text` belong to `script`, or if there are no letters."""
    letters = {letter: count for letter, count in Counter(text).items() if letter.isalpha()}
    belonging = sum(count for letter, count in letters.items() if _belongs(letter, script))
    return 2 * belonging >= sum(letters.values())


@cache
def _belongs(letter: str, script: str) -> bool:
    name = unicodedata.name(letter, "").removeprefix("HALFWIDTH ").removeprefix("FULLWIDTH ")
    return name.startswith(LETTER_NAMES[script])
