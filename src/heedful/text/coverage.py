"""Coverage: how well the vocabulary of a tokenizer fits a text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import tee

from heedful.text.pipeline import UNK
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of words, characters and tokens of a text, and shares that follow: 0 where nothing is counted."""

    lines: int
    words: int  # what stands between white space
    characters: int
    tokens: int
    unknown_tokens: int  # <unk>
    spelled_characters: int  # characters written in bytes
    byte_tokens: int  # tokens for the bytes of these characters
    used_ids: int  # different ids that occur
    vocabulary: int  # the number of ids
    longest: int  # tokens of the longest line
    longest_line: int  # the number of the longest line, from 1; 0 if there are no lines

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that are <unk>."""
        return self.unknown_tokens / max(self.tokens, 1)

    @property
    def spelled_share(self) -> float:
        """Share of the characters that are spelled in bytes."""
        return self.spelled_characters / max(self.characters, 1)

    @property
    def units(self) -> int:
        """Number of tokens, where all bytes of a character count as one."""
        return self.tokens - self.byte_tokens + self.spelled_characters

    @property
    def unfamiliar(self) -> int:
        """Number of units that the vocabulary lacks: <unk> tokens, and characters that are spelled in bytes."""
        return self.unknown_tokens + self.spelled_characters

    @property
    def used_share(self) -> float:
        """Share of the vocabulary that occurs in the text."""
        return self.used_ids / self.vocabulary

    @property
    def tokens_per_word(self) -> float:
        """Mean number of tokens that a word becomes, also known as fertility."""
        return self.tokens / max(self.words, 1)

    @property
    def tokens_per_character(self) -> float:
        """Mean number of tokens that a character becomes."""
        return self.tokens / max(self.characters, 1)


def measure_coverage(tokenizer: Tokenizer, lines: Iterable[str]) -> Coverage:
    """Encode the lines of a text, in constant memory, and count how well the vocabulary fits.

    Raises:
        InputError: A line holds a lone surrogate.
    """
    # UTF-8 begins each character with a byte that is not 10xxxxxx, so that these count characters.
    beginnings = {i for byte, i in enumerate(tokenizer.byte_ids) if byte & 0b1100_0000 != 0b1000_0000}
    seen: Counter[int] = Counter()
    words = characters = longest = longest_line = number = 0
    texts, copies = tee(lines)
    for number, (text, ids) in enumerate(zip(texts, tokenizer.encode_lines(copies), strict=True), start=1):
        seen.update(ids)
        words += len(text.split())
        characters += len(text)
        if len(ids) > longest or number == 1:
            longest, longest_line = len(ids), number
    return Coverage(
        lines=number,
        words=words,
        characters=characters,
        tokens=seen.total(),
        unknown_tokens=seen[UNK],
        spelled_characters=sum(seen[i] for i in beginnings),
        byte_tokens=sum(seen[i] for i in tokenizer.byte_ids),
        used_ids=len(seen),
        vocabulary=len(tokenizer),
        longest=longest,
        longest_line=longest_line,
    )
