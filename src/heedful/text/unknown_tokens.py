"""Unknown tokens of a text: counted while it is encoded, and reported with the remedy where they are too many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heedful.config.schema import TokenizerConfig
from heedful.text.pipeline import EOS, UNK

MANY = 0.02  # the share of unknown tokens from which about every third sentence has one


@dataclass
class UnknownTokens:
    """Counts of the tokens of a text, special tokens at its beginning and end not counted, and of those unknown."""

    tokens: int = 0
    unknown: int = 0

    @property
    def share(self) -> float:
        """Share of the tokens that are unknown."""
        return self.unknown / max(self.tokens, 1)

    def count(self, ids: Sequence[int]) -> None:
        """Count the tokens of an encoded text; <unk> is unknown."""
        self.tokens += len(ids) - ids.count(EOS)
        self.unknown += ids.count(UNK)


def unknown_lines(texts: Mapping[str, UnknownTokens], config: TokenizerConfig) -> Iterator[str]:
    """Yield a sentence with the remedy for each text that has many unknown tokens.

    Args:
        texts: The counts by what was counted, such as "target tokens of train.de".
        config: The settings of the tokenizer, which decide the remedy.
    """
    for name, found in texts.items():
        if found.share >= MANY:
            yield f"{found.share:.0%} of the {name} are unknown to the vocabulary (<unk>); {remedy(config)}"


def remedy(config: TokenizerConfig) -> str:
    """Return the settings of a recipe that make unknown tokens fewer."""
    if config.path is not None or config.kind == "foreign":
        return "the vocabulary was made for other text: train with one that is made for this text"
    bpe = 'tokenizer.kind = "bpe" or ' if config.kind == "word" else ""
    return f"raise tokenizer.vocab_size, or set {bpe}tokenizer.byte_fallback = true"
