"""Coverage of a text by a tokenizer's vocabulary, and warnings about unknown tokens."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee

from heedful.config.schema import TokenizerConfig
from heedful.text.pipeline import EOS, UNK
from heedful.text.tokenizer import Tokenizer

MANY_UNKNOWN = 0.02  # the share of unknown tokens at which about every third sentence contains one


@dataclass
class UnknownTokens:
    """Number of tokens in a text, <eos> not counted, and number of unknown tokens among them."""

    tokens: int = 0
    unknown: int = 0

    @property
    def share(self) -> float:
        return self.unknown / max(self.tokens, 1)

    def count(self, ids: Sequence[int]) -> None:
        """Add the tokens of an encoded text to the counts; <unk> is an unknown token."""
        self.tokens += len(ids) - ids.count(EOS)
        self.unknown += ids.count(UNK)


def unknown_lines(texts: Mapping[str, UnknownTokens], config: TokenizerConfig) -> Iterator[str]:
    """Yield a warning with the remedy for each text that has many unknown tokens."""
    for name, counts in texts.items():
        if counts.share >= MANY_UNKNOWN:
            yield f"{counts.share:.0%} of the {name} are not in the vocabulary (<unk>); {remedy(config)}"


def remedy(config: TokenizerConfig) -> str:
    """Return advice on how to avoid unknown tokens, for the end of a warning."""
    if config.path is not None or config.kind == "foreign":
        return "the vocabulary was trained on different text: use one trained on this text"
    bpe = 'tokenizer.kind = "bpe" or ' if config.kind == "word" else ""
    return f"raise tokenizer.vocab_size, or set {bpe}tokenizer.byte_fallback = true"


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of words, characters and tokens in a text, and shares and means, which are 0 for an empty text."""

    lines: int
    words: int  # separated by whitespace
    characters: int
    tokens: int
    unknown_tokens: int  # <unk>
    spelled_characters: int  # characters split into bytes
    byte_tokens: int  # tokens for the bytes of these characters
    used_ids: int  # distinct ids that occur
    vocabulary: int  # the number of ids
    longest: int  # the number of tokens in the longest line
    longest_line: int  # the number of the line with the most tokens, from 1; 0 for an empty text

    @property
    def unknown_share(self) -> float:
        return self.unknown_tokens / max(self.tokens, 1)

    @property
    def spelled_share(self) -> float:
        return self.spelled_characters / max(self.characters, 1)

    @property
    def units(self) -> int:
        """Number of tokens, counting all bytes of a character as one."""
        return self.tokens - self.byte_tokens + self.spelled_characters

    @property
    def unfamiliar(self) -> int:
        """Number of units that the vocabulary lacks: <unk> tokens, and characters that are split into bytes."""
        return self.unknown_tokens + self.spelled_characters

    @property
    def used_share(self) -> float:
        return self.used_ids / self.vocabulary

    @property
    def tokens_per_word(self) -> float:
        """Mean number of tokens per word, also known as fertility."""
        return self.tokens / max(self.words, 1)

    @property
    def tokens_per_character(self) -> float:
        return self.tokens / max(self.characters, 1)


def measure_coverage(tokenizer: Tokenizer, lines: Iterable[str]) -> Coverage:
    """Encode the lines of a text, in constant memory, and measure how well the vocabulary covers it."""
    # Characters are counted by their first bytes: in UTF-8, all other bytes have the form 10xxxxxx.
    first_bytes = {i for byte, i in enumerate(tokenizer.byte_ids) if byte & 0b1100_0000 != 0b1000_0000}
    id_counts: Counter[int] = Counter()
    words = characters = max_length = longest_line = number = 0
    # `encode_lines` reads one chunk of lines ahead, so `tee` stores at most one chunk.
    texts, copies = tee(lines)
    for number, (text, ids) in enumerate(zip(texts, tokenizer.encode_lines(copies), strict=True), start=1):
        id_counts.update(ids)
        words += len(text.split())
        characters += len(text)
        if len(ids) > max_length or number == 1:
            max_length, longest_line = len(ids), number
    return Coverage(
        lines=number,
        words=words,
        characters=characters,
        tokens=id_counts.total(),
        unknown_tokens=id_counts[UNK],
        spelled_characters=sum(id_counts[i] for i in first_bytes),
        byte_tokens=sum(id_counts[i] for i in tokenizer.byte_ids),
        used_ids=len(id_counts),
        vocabulary=len(tokenizer),
        longest=max_length,
        longest_line=longest_line,
    )
