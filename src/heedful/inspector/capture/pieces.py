"""Labels for the positions in a trace: subword pieces of a text and the words that they form, patches, or frames."""

import unicodedata
from dataclasses import dataclass

from heedful.text.tokenizer import Tokenizer

# Prefixes of the Unicode names of letters in scripts without spaces between words.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Pieces:
    """Token ids of a text with labels for pieces and words; in scripts without spaces each piece is a word."""

    ids: list[int]
    labels: list[str]  # one for each piece
    words: list[str]
    word_of_piece: list[int]  # index into words

    @classmethod
    def numbered(cls, labels: list[str]) -> "Pieces":
        """Label positions that are no tokens, such as patches: their ids are their numbers, and each is a word."""
        numbers = list(range(len(labels)))
        return cls(ids=numbers, labels=labels, words=labels, word_of_piece=numbers)

    @classmethod
    def of(cls, ids: list[int], tokenizer: Tokenizer) -> "Pieces":
        """Label token ids with their pieces and words."""
        spelled = words_of(ids, tokenizer)
        return cls(
            ids=ids,
            labels=tokenizer.pieces(ids),
            words=[label(word, tokenizer) for word in spelled],
            word_of_piece=[number for number, word in enumerate(spelled) for _ in word],
        )


def words_of(ids: list[int], tokenizer: Tokenizer) -> list[list[int]]:
    """Group token ids into words: a list of ids for each word."""
    words: list[list[int]] = []
    numbers = tokenizer.word_of_piece(ids)
    for i, number, before in zip(ids, numbers, [None, *numbers], strict=False):
        if number != before or stands_alone(tokenizer.decode([i])):
            words.append([])
        words[-1].append(i)
    return words


def stands_alone(piece: str) -> bool:
    """True if a piece begins with a letter of a script without spaces, such as Chinese or Thai."""
    return unicodedata.name(piece[:1] or " ", "").startswith(UNSPACED)


def label(word: list[int], tokenizer: Tokenizer) -> str:
    """Text of a word given by its token ids; the names of the pieces if the decoded text is blank."""
    return tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word))
