"""Splitting of texts into words, as in tagged training data, and rows of token ids with the position of each word."""

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
from heedful.text.tokenizer import CharacterSpan, Tokenizer

# Chinese is written without spaces, and its tagged corpora have one character per word.
_WORD = r"\p{Han}\p{M}*|[[\p{L}\p{M}\p{N}_]&&[^\p{Han}]]+|[^\s]|\s+"
_SPLITTER = pre_tokenizers.Split(Regex(_WORD), "isolated")


class Spelled(NamedTuple):
    """Token ids of a word. The first `first` of them are spaces before the word.

    If the tokenizer drops a word completely, its id is <unk>.
    """

    ids: list[int]
    first: int


class SplitText(str):
    """String of words separated by spaces, which also stores the words."""

    words: tuple[str, ...]

    def __new__(cls, words: Sequence[object]) -> "SplitText":
        for number, word in enumerate(words, start=1):
            if not isinstance(word, str) or not word.strip():
                raise InputError(f"word {number} is {word!r}; each word must be a non-empty string")
        strings = tuple(map(str, words))
        text = super().__new__(cls, " ".join(strings))
        text.words = strings
        return text


class WordRow(NamedTuple):
    """Input row of token ids for words, with the words that have more context in this row than in others.

    `places` contains the index of each of these words, and its position in the row.
    """

    ids: list[int]
    places: list[tuple[int, int]]


def split_words(text: str) -> list[str]:
    """Split a text at spaces and around punctuation marks and Chinese characters, which are separate words."""
    return [word for word, _ in _SPLITTER.pre_tokenize_str(text) if not word.isspace()]


def word_spans(text: str) -> list[CharacterSpan]:
    """Return the spans of characters of the words in a text, which are separated by spaces.

    Punctuation at either end of a word is separated from it, except for an apostrophe; it stays inside a word, as in
    "12.30", "well-known" and "it's". In scripts without spaces, such as Chinese, each character is a word.
    """
    return [span for word, span in _SPACED.pre_tokenize_str(text) if not word.isspace()]


def spell_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[Spelled]:
    """Encode each word of a sentence. Together, the ids encode the sentence with a space before every word."""
    begins = list(accumulate((len(word) + 1 for word in words), initial=0))
    word_ids: list[list[int]] = [[] for _ in words]
    spaces = [0] * len(words)
    for i, (_, end) in zip(*tokenizer.encode_with_places(" ".join(words)), strict=True):
        # A token that ends where the next word begins is the space before that word.
        word = bisect_left(begins, end) - 1
        is_space = end == begins[word + 1]
        word_ids[word + is_space].append(i)
        spaces[word + is_space] += is_space
    return [Spelled(ids if ids[first:] else [*ids, UNK], first) for ids, first in zip(word_ids, spaces, strict=True)]


def rows_of_words(tokenizer: Tokenizer, words: Sequence[str], longest: int, *, causal: bool) -> list[WordRow]:
    """Encode words as rows of at most `longest` ids, <bos> and <eos> included; every word has a position in one row.

    The position of a word is where its first piece is (Devlin et al. 2019, section 5.3). In a causal model, it is where
    the last piece is, because only this piece attends to the whole word.
    """
    encodings = spell_words(tokenizer, words)
    ids = [i for word in encodings for i in word.ids]
    begins = accumulate((len(word.ids) for word in encodings), initial=0)
    offsets = (len(word.ids) - 1 if causal else word.first for word in encodings)
    positions = [begin + offset for begin, offset in zip(begins, offsets, strict=False)]
    rows = []
    for window in windows(len(ids), longest - 2):
        # Each word is read in the window in which it has the most context.
        own = range(bisect_left(positions, window.first), bisect_left(positions, window.stop))
        row = sequence(ids[window.begin : window.end], longest=longest)
        rows.append(WordRow(row, [(word, positions[word] - window.begin + 1) for word in own]))
    return rows


MAX_WORDS = 50_000  # maximum number of special words that are learned

# Scripts besides Chinese that are written without spaces; each character may begin or end a word.
_UNSPACED = r"\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_PLAIN_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_]&&[^\p{{Han}}{_UNSPACED}]]+|\p{{Han}}\p{{M}}*"
_ATOMS = pre_tokenizers.Split(Regex(rf"[{_UNSPACED}]\p{{M}}*|{_PLAIN_WORD}|[^\s]|\s+"), "isolated")
_PLAIN = pre_tokenizers.Split(Regex(rf"\A(?:{_PLAIN_WORD})\z"), "removed")
# A word from its first to its last letter or digit, with whatever is between them, and an apostrophe at either end
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]&&[^\p{{Han}}{_UNSPACED}]]"
_SPACE = r"\s\x1c-\x1f"  # as in Python's `str.split`
_JOINED_WORD = rf"['’]?{_LETTER}(?:[^{_SPACE}\p{{Han}}{_UNSPACED}]*{_LETTER})?['’]?"
_SPACED = pre_tokenizers.Split(
    Regex(rf"{_JOINED_WORD}|[\p{{Han}}{_UNSPACED}]\p{{M}}*|[^{_SPACE}]|[{_SPACE}]+"), "isolated"
)
_NEGATION = re.compile(r"n['’]t", re.IGNORECASE)  # in the Penn Treebank, "don't" is split into "do" and "n't"

Context = tuple[str, str, str]  # the kind of atom before a punctuation mark, the mark, the kind after it; "" if none


def special_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words from which `WordSplitter` learns how text is split: at most `MAX_WORDS`, most frequent first.

    These are words with punctuation marks, marks that are words, and words of scripts without spaces; spaces and
    punctuation show where all other words begin and end.
    """
    # `_PLAIN` removes plain words completely, so only special words leave something.
    counts = Counter(word for word in words if _PLAIN.pre_tokenize_str(word))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORDS])


class WordSplitter:
    """Splitter of text into words like those of training data.

    A word of the training data is kept whole, even if it is capitalised in the text. A punctuation mark is kept inside
    another word if words of the training data have it between letters or digits of the same kinds: if "Anna-Lena" and
    "U.S." are words, so are "Jean-Luc" and "U.N." At either end of a word, this applies only to marks that are never
    words by themselves, and to marks after an initial. All other text is split as `split_words` does.

    Args:
        words: Special words of the training data, from `special_words`.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.marks = {word for word in words if len(word) == 1 and _kind(word) == word}
        self.words = {word for word in words if word not in self.marks}
        self.inside: set[Context] = set()
        self.max_atoms: dict[str, int] = {}  # the maximum number of atoms in a word, by its first atom
        for word in self.words:
            atoms = _atoms(word)
            self.max_atoms[atoms[0]] = max(len(atoms), self.max_atoms.get(atoms[0], 0))
            self.inside.update(context for context in _contexts(split_words(word)) if context[0] or context[2])

    def cut(self, text: str) -> list[str]:
        """Split a text into words, without the spaces between them."""
        if not self.words:
            return split_words(text)
        words: list[str] = []
        atoms = _atoms(text)
        begin = index = 0  # the first atom that is not yet in a word, and the next atom to look at
        while index < len(atoms):
            if count := self._known_word(atoms, index):
                words += [*self._cut_unknown("".join(atoms[begin:index])), "".join(atoms[index : index + count])]
                begin = index = index + count
            else:
                # "don't" is split into "do" and "n't" if the latter is a word of the training data.
                atom, ending = atoms[index], atoms[index][-1] + "".join(atoms[index + 1 : index + 3])
                if len(atom) > 1 and _NEGATION.fullmatch(ending) and ending in self.words:
                    atoms[index : index + 1] = [atom[:-1], atom[-1]]
                index += 1
        return words + self._cut_unknown("".join(atoms[begin:]))

    def _known_word(self, atoms: Sequence[str], begin: int) -> int:
        """Return the number of atoms of the longest known word that starts at index `begin`, or 0."""
        first = atoms[begin]
        max_atoms = max(self.max_atoms.get(first, 0), self.max_atoms.get(first.lower(), 0))
        for count in range(min(max_atoms, len(atoms) - begin), 0, -1):
            end = begin + count
            word = "".join(atoms[begin:end])
            if word not in self.words and word.lower() not in self.words:
                continue
            # A word does not end at a mark that joins initials on both sides, as in "U.S.A".
            kinds = tuple(map(_kind, atoms[end - 2 : end + 1]))
            if not (len(kinds) == 3 and kinds[0] == kinds[2] == "A" and kinds in self.inside):
                return count
        return 0

    def _cut_unknown(self, text: str) -> list[str]:
        """Split text that contains no word of the training data, keeping the marks that belong inside words."""
        words: list[str] = []
        for chunk in text.split():
            atoms = split_words(chunk)
            continues = False  # True if the next atom belongs to the word before it
            for atom, context in zip(atoms, _contexts(atoms), strict=True):
                is_mark = context[1] == atom
                holds = is_mark and self._holds(context)
                if words and (continues or (holds and context[0])):
                    words[-1] += atom
                else:
                    words.append(atom)
                continues = holds and context[2] != ""
        return words

    def _holds(self, context: Context) -> bool:
        """Return True if a mark is part of the word around it."""
        before, mark, after = context
        at_edge = not (before and after)
        return context in self.inside and not (at_edge and mark in self.marks and before != "A")


def _atoms(text: str) -> list[str]:
    return [atom for atom, _ in _ATOMS.pre_tokenize_str(text)]


def _kind(atom: str) -> str:
    """Return the kind of an atom: "A" for an initial, "a" for other letters, "0" for digits, else the mark itself."""
    if not (atom[0].isalnum() or len(atom) > 1 or atom == "_"):
        return atom
    if atom[0].isdigit():
        return "0"
    return "A" if len(atom) == 1 and atom.isupper() else "a"


def _contexts(atoms: Sequence[str]) -> Iterator[Context]:
    """Yield, for each atom, the kind before it, its own kind, and the kind after it.

    A neighbour that is neither letters nor digits has an empty kind.
    """
    kinds = ["", *map(_kind, atoms), ""]
    around = ["" if kind not in ("A", "a", "0") else kind for kind in kinds]
    return zip(around[:-2], kinds[1:-1], around[2:], strict=True)
