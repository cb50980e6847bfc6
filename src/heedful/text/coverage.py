"""How well a vocabulary fits a text."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import tee

from heedful.text.tokenizer import Tokenizer, UNK


@dataclass(frozen=True)
class Coverage:
    """Counts over the lines of a text, and the shares that follow from them (0 where there is nothing to share)."""

    lines: int
    words: int  # between white space
    characters: int
    tokens: int
    unknown: int  # tokens that are <unk>
    spelled: int  # characters spelled in bytes
    used: int  # ids that occur
    vocabulary: int  # ids that there are
    longest: int  # tokens of the longest line
    longest_line: int  # its number, from 1
