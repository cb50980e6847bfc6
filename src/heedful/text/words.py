"""Words of a text as rows of token ids that a model reads, with the place of each word: for taggers."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tokenizers import Regex, pre_tokenizers

from heedful.errors import InputError
from heedful.text.pipeline import UNK
from heedful.text.sequence import sequence
from heedful.text.tokenizer import Tokenizer
from heedful.text.windows import windows

# Chinese is written without spaces, and its corpora with tags have a character for each word.
_WORD = r"\p{Han}\p{M}*|[[\p{L}\p{M}\p{N}_]&&[^\p{Han}]]+|[^\s]|\s+"
_SPLITTER = pre_tokenizers.Split(Regex(_WORD), "isolated")


class Spelled(NamedTuple):
    """Token ids of a word, `first` of them for spaces before it; <unk> if the tokenizer keeps nothing of the word."""

    ids: list[int]
    first: int


class CutText(str):
    """A text that is given as words: a string of the words with spaces between them, which remembers the words."""

    words: tuple[str, ...]

    def __new__(cls, words: Sequence[object]) -> "CutText":
        """Join words to a text.

        Raises:
            InputError: a word is not a string, is empty or holds nothing but spaces.
        """
        for number, word in enumerate(words, start=1):
            if not isinstance(word, str) or not word.strip():
                raise InputError(f"word {number} is {word!r}; each word is a string that is not empty")
        strings = tuple(map(str, words))
        text = super().__new__(cls, " ".join(strings))
        text.words = strings
        return text


class WordRow(NamedTuple):
    """Input row of token ids for words, with the number and the place of each word that this row shows best."""

    ids: list[int]
    places: list[tuple[int, int]]


def split_words(text: str) -> list[str]:
    """Cut a text at spaces and around punctuation marks and Chinese characters, which are words by themselves."""
    return [word for word, _ in _SPLITTER.pre_tokenize_str(text) if not word.isspace()]


def spell_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[Spelled]:
    """Encode each word of a sentence; all ids together are those of a text with a space before every word.

    Raises:
        InputError: A word holds a lone surrogate.
    """
    begins = list(accumulate((len(word) + 1 for word in words), initial=0))
    spelled: list[list[int]] = [[] for _ in words]
    spaces = [0] * len(words)
    for i, (_, end) in zip(*tokenizer.encode_with_places(" ".join(words)), strict=True):
        word = bisect_left(begins, end) - 1
        is_space = end == begins[word + 1]
        spelled[word + is_space].append(i)
        spaces[word + is_space] += is_space
    return [Spelled(ids if ids[first:] else [*ids, UNK], first) for ids, first in zip(spelled, spaces, strict=True)]


def rows_of_words(tokenizer: Tokenizer, words: Sequence[str], longest: int, *, causal: bool) -> list[WordRow]:
    """Encode words as rows of at most `longest` ids, <bos> and <eos> included; every word has its place in one row.

    A word stands at its first piece (Devlin et al. 2019, section 5.3), but for a model that is causal at its last one,
    which alone has seen the whole word.

    Raises:
        InputError: A word holds a lone surrogate.
    """
    spelled = spell_words(tokenizer, words)
    ids = [i for word in spelled for i in word.ids]
    begins = accumulate((len(word.ids) for word in spelled), initial=0)
    own = (len(word.ids) - 1 if causal else word.first for word in spelled)
    places = [begin + place for begin, place in zip(begins, own, strict=False)]
    rows = []
    for window in windows(len(ids), longest - 2):
        mine = range(bisect_left(places, window.first), bisect_left(places, window.stop))
        row = sequence(ids[window.begin : window.end], longest=longest)
        rows.append(WordRow(row, [(word, places[word] - window.begin + 1) for word in mine]))
    return rows
