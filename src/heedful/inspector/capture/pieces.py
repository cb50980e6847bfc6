"""A sentence cut into pieces, and the words that the pieces spell: the labels of whatever is looked at."""

import unicodedata
from dataclasses import dataclass

from heedful.text.tokenizer import Tokenizer

# How the Unicode names of letters begin whose scripts have no spaces between words.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Pieces:
    """A text as a model sees it; where a script has no spaces, each piece counts as a word."""

    ids: list[int]
    labels: list[str]  # of each piece
    words: list[str]
    word_of_piece: list[int]

    @classmethod
    def of(cls, ids: list[int], tokenizer: Tokenizer) -> "Pieces":
        """Name what ids stand for."""
        spelled = words_of(ids, tokenizer)
        return cls(
            ids=ids,
            labels=tokenizer.pieces(ids),
            words=[label(word, tokenizer) for word in spelled],
            word_of_piece=[number for number, word in enumerate(spelled) for _ in word],
        )


def words_of(ids: list[int], tokenizer: Tokenizer) -> list[list[int]]:
    """Cut ids into words."""
    words: list[list[int]] = []
    numbers = tokenizer.word_of_piece(ids)
    for i, number, before in zip(ids, numbers, [None, *numbers], strict=False):
        if number != before or stands_alone(tokenizer.decode([i])):
            words.append([])
        words[-1].append(i)
    return words


def stands_alone(piece: str) -> bool:
    """Whether a piece begins with a letter of a script without spaces."""
    return unicodedata.name(piece[:1] or " ", "").startswith(UNSPACED)


def label(word: list[int], tokenizer: Tokenizer) -> str:
    """What a word spells; the names of its pieces where that cannot be seen."""
    return tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word))
