"""Words of a text, split like tagged training data, and rows of token ids with the position of each word."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from tokenizers import Regex, pre_tokenizers

from heedful.errors import InputError
from heedful.text.pipeline import UNK
from heedful.text.sequences import sequence, windows
from heedful.text.tokenizer import Tokenizer

# Chinese is written without spaces, and its tagged corpora have one character per word.
_WORD = r"\p{Han}\p{M}*|[[\p{L}\p{M}\p{N}_]&&[^\p{Han}]]+|[^\s]|\s+"
_SPLITTER = pre_tokenizers.Split(Regex(_WORD), "isolated")


class Spelled(NamedTuple):
    """Token ids of a word, `first` of them for spaces before it; <unk> if the tokenizer drops the whole word."""

    ids: list[int]
    first: int


class CutText(str):
    """String of words separated by spaces, which also stores the words."""

    words: tuple[str, ...]

    def __new__(cls, words: Sequence[object]) -> "CutText":
        for number, word in enumerate(words, start=1):
            if not isinstance(word, str) or not word.strip():
                raise InputError(f"word {number} is {word!r}; each word must be a non-empty string")
        strings = tuple(map(str, words))
        text = super().__new__(cls, " ".join(strings))
        text.words = strings
        return text


class WordRow(NamedTuple):
    """Input row of token ids for words, with the number and position of each word that has the most context here."""

    ids: list[int]
    places: list[tuple[int, int]]


def split_words(text: str) -> list[str]:
    """Split a text at spaces and around punctuation marks and Chinese characters, which are separate words."""
    return [word for word, _ in _SPLITTER.pre_tokenize_str(text) if not word.isspace()]


def spell_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[Spelled]:
    """Encode each word of a sentence; all ids together encode a text with a space before every word."""
    begins = list(accumulate((len(word) + 1 for word in words), initial=0))
    spelled: list[list[int]] = [[] for _ in words]
    spaces = [0] * len(words)
    for i, (_, end) in zip(*tokenizer.encode_with_places(" ".join(words)), strict=True):
        # A token that ends where the next word begins is the space before that word.
        word = bisect_left(begins, end) - 1
        is_space = end == begins[word + 1]
        spelled[word + is_space].append(i)
        spaces[word + is_space] += is_space
    return [Spelled(ids if ids[first:] else [*ids, UNK], first) for ids, first in zip(spelled, spaces, strict=True)]


def rows_of_words(tokenizer: Tokenizer, words: Sequence[str], longest: int, *, causal: bool) -> list[WordRow]:
    """Encode words as rows of at most `longest` ids, <bos> and <eos> included; every word has its place in one row.

    The place of a word is its first piece (Devlin et al. 2019, section 5.3) or, in a causal model, its last one, which
    is the only one that attends to the whole word.
    """
    spelled = spell_words(tokenizer, words)
    ids = [i for word in spelled for i in word.ids]
    begins = accumulate((len(word.ids) for word in spelled), initial=0)
    own = (len(word.ids) - 1 if causal else word.first for word in spelled)
    places = [begin + place for begin, place in zip(begins, own, strict=False)]
    rows = []
    for window in windows(len(ids), longest - 2):
        # Each word is read in the window in which it has the most context.
        mine = range(bisect_left(places, window.first), bisect_left(places, window.stop))
        row = sequence(ids[window.begin : window.end], longest=longest)
        rows.append(WordRow(row, [(word, places[word] - window.begin + 1) for word in mine]))
    return rows


MAX_WORDS = 50_000  # in a recipe, the most frequent ones

# Scripts besides Chinese that are written without spaces; each character may begin or end a word.
_UNSPACED = r"\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_PLAIN_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_]&&[^\p{{Han}}{_UNSPACED}]]+|\p{{Han}}\p{{M}}*"
_ATOMS = pre_tokenizers.Split(Regex(rf"[{_UNSPACED}]\p{{M}}*|{_PLAIN_WORD}|[^\s]|\s+"), "isolated")
_PLAIN = pre_tokenizers.Split(Regex(rf"\A(?:{_PLAIN_WORD})\z"), "removed")
_NEGATION = re.compile(r"n['’]t", re.IGNORECASE)  # in the Penn Treebank, "don't" is split into "do" and "n't"

Context = tuple[str, str, str]  # what is before a punctuation mark, the mark, and what follows; "": nothing


def special_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words from which `WordCutter` learns how text is split, most frequent first.

    These are words with punctuation marks, marks that are words, and words of scripts without spaces; spaces and
    punctuation show where all other words begin and end.
    """
    # `_PLAIN` removes plain words completely, so only special words leave something.
    counts = Counter(word for word in words if _PLAIN.pre_tokenize_str(word))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORDS])


class WordCutter:
    """Splits text into words like those of training data.

    A word of the training data is kept whole, also if it is written with capitals. A punctuation mark is kept inside
    another word if words of the training data have it between letters or digits of the same kinds: after "Anna-Lena"
    and "U.S.", "Jean-Luc" and "U.N." are words. At the end of a word, this applies only to marks that are never words,
    or after an initial. All other text is split as by `split_words`.

    Args:
        words: Special words of the training data, from `special_words`.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.marks = {word for word in words if len(word) == 1 and _kind(word) == word}
        self.words = {word for word in words if word not in self.marks}
        self.inside: set[Context] = set()
        self.longest: dict[str, int] = {}  # by first atom, the maximum number of atoms in a word
        for word in self.words:
            atoms = _atoms(word)
            self.longest[atoms[0]] = max(len(atoms), self.longest.get(atoms[0], 0))
            self.inside.update(context for context in _contexts(split_words(word)) if context[0] or context[2])

    def cut(self, text: str) -> list[str]:
        """Split a text into words, without the spaces between them."""
        if not self.words:
            return split_words(text)
        words: list[str] = []
        atoms = _atoms(text)
        begin = place = 0  # where text without a known word begins, and the next atom
        while place < len(atoms):
            if count := self._known(atoms, place):
                words += [*self._cut_unknown("".join(atoms[begin:place])), "".join(atoms[place : place + count])]
                begin = place = place + count
            else:
                # "don't" is split into "do" and "n't" if the latter is a word of the training data.
                atom, ending = atoms[place], atoms[place][-1] + "".join(atoms[place + 1 : place + 3])
                if len(atom) > 1 and _NEGATION.fullmatch(ending) and ending in self.words:
                    atoms[place : place + 1] = [atom[:-1], atom[-1]]
                place += 1
        return words + self._cut_unknown("".join(atoms[begin:]))

    def _known(self, atoms: Sequence[str], place: int) -> int:
        """Return the number of atoms of the longest known word that begins at a place, or 0."""
        first = atoms[place]
        longest = max(self.longest.get(first, 0), self.longest.get(first.lower(), 0))
        for count in range(min(longest, len(atoms) - place), 0, -1):
            end = place + count
            word = "".join(atoms[place:end])
            if word not in self.words and word.lower() not in self.words:
                continue
            # No word ends at a mark between two initials that belongs to both, as in "U.S.A".
            kinds = tuple(map(_kind, atoms[end - 2 : end + 1]))
            if not (len(kinds) == 3 and kinds[0] == kinds[2] == "A" and kinds in self.inside):
                return count
        return 0

    def _cut_unknown(self, text: str) -> list[str]:
        """Split text that contains no word of the training data."""
        words: list[str] = []
        for chunk in text.split():
            atoms = split_words(chunk)
            joined = False  # whether the next atom belongs to the word before it
            for atom, context in zip(atoms, _contexts(atoms), strict=True):
                is_mark = context[1] == atom
                holds = is_mark and self._holds(context)
                if words and (joined or (holds and context[0])):
                    words[-1] += atom
                else:
                    words.append(atom)
                joined = holds and context[2] != ""
        return words

    def _holds(self, context: Context) -> bool:
        """True if a mark belongs to the letters or digits around it."""
        before, mark, after = context
        at_edge = not (before and after)
        return context in self.inside and not (at_edge and mark in self.marks and before != "A")


def _atoms(text: str) -> list[str]:
    return [atom for atom, _ in _ATOMS.pre_tokenize_str(text)]


def _kind(atom: str) -> str:
    """Return the kind of an atom: "A" an initial, "a" other letters, "0" digits; a punctuation mark is its own kind."""
    if not (atom[0].isalnum() or len(atom) > 1 or atom == "_"):
        return atom
    if atom[0].isdigit():
        return "0"
    return "A" if len(atom) == 1 and atom.isupper() else "a"


def _contexts(atoms: Sequence[str]) -> Iterator[Context]:
    """Yield, for each atom, the kind before it, its own kind, and the kind after it; adjacent marks count as empty."""
    kinds = ["", *map(_kind, atoms), ""]
    around = ["" if kind not in ("A", "a", "0") else kind for kind in kinds]
    return zip(around[:-2], kinds[1:-1], around[2:], strict=True)
