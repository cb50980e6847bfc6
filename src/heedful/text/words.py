"""Words of a text, cut as the words of tagged training data are, as rows of token ids with the place of each word."""

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
        """Join words to a text."""
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
    """Encode each word of a sentence; all ids together are those of a text with a space before every word."""
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


MAX_WORDS = 50_000  # of a recipe, the most frequent

# Scripts besides Chinese that are written without spaces; each character may begin or end a word.
_UNSPACED = r"\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_PLAIN_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_]&&[^\p{{Han}}{_UNSPACED}]]+|\p{{Han}}\p{{M}}*"
_ATOMS = pre_tokenizers.Split(Regex(rf"[{_UNSPACED}]\p{{M}}*|{_PLAIN_WORD}|[^\s]|\s+"), "isolated")
_PLAIN = pre_tokenizers.Split(Regex(rf"\A(?:{_PLAIN_WORD})\z"), "removed")
_NEGATION = re.compile(r"n['’]t", re.IGNORECASE)  # in Penn Treebank's words, "don't" is "do" and "n't"

Context = tuple[str, str, str]  # what is before a punctuation mark, the mark, and what follows; "": nothing


def special_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words from which `WordCutter` learns how text is cut, the most frequent first.

    These are words with punctuation marks, marks that are words, and words of scripts without spaces; where every other
    word begins and ends, a text shows.
    """
    counts = Counter(word for word in words if _PLAIN.pre_tokenize_str(word))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORDS])


class WordCutter:
    """Cuts text into words like those of training data.

    A word of the training data stays whole, also where it is written with capitals. A punctuation mark in another word
    does if it is there in words of the training data, between letters or figures of the same kinds: after "Anna-Lena"
    and "U.S.", "Jean-Luc" and "U.N." are words. At the end of a word this holds only for marks that are never words, or
    after an initial. Elsewhere, text is cut as `split_words` does, and without any words like that everywhere.

    Args:
        words: special words of the training data, as `special_words` returns them.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.marks = {word for word in words if len(word) == 1 and _kind(word) == word}
        self.words = {word for word in words if word not in self.marks}
        self.inside: set[Context] = set()
        self.longest: dict[str, int] = {}  # by its first atom, the most atoms of a word
        for word in self.words:
            atoms = _atoms(word)
            self.longest[atoms[0]] = max(len(atoms), self.longest.get(atoms[0], 0))
            self.inside.update(context for context in _contexts(split_words(word)) if context[0] or context[2])

    def cut(self, text: str) -> list[str]:
        """Cut a text into words; spaces between words are left out."""
        if not self.words:
            return split_words(text)
        words: list[str] = []
        atoms = _atoms(text)
        begin = place = 0  # of what no word of the training data is found in so far, and of the next atom
        while place < len(atoms):
            if count := self._known(atoms, place):
                words += [*self._cut_unknown("".join(atoms[begin:place])), "".join(atoms[place : place + count])]
                begin = place = place + count
            elif self._is_negated(atoms, place):
                atoms[place : place + 1] = [atoms[place][:-1], atoms[place][-1]]
                place += 1
            else:
                place += 1
        return words + self._cut_unknown("".join(atoms[begin:]))

    def _known(self, atoms: Sequence[str], place: int) -> int:
        """The number of atoms of the longest known word that begins at a place; 0: there is none."""
        first = atoms[place]
        longest = max(self.longest.get(first, 0), self.longest.get(first.lower(), 0))
        for count in range(min(longest, len(atoms) - place), 0, -1):
            end = place + count
            word = "".join(atoms[place:end])
            is_word = word in self.words or word.lower() in self.words
            if is_word and not self._are_initials(atoms[end - 2 : end + 1]):
                return count
        return 0

    def _are_initials(self, atoms: Sequence[str]) -> bool:
        """True for a mark between two initials that belongs to both, as in "U.S.A", so that no word ends at it."""
        kinds = tuple(map(_kind, atoms))
        return len(kinds) == 3 and kinds[0] == kinds[2] == "A" and kinds in self.inside

    def _is_negated(self, atoms: Sequence[str], place: int) -> bool:
        ending = atoms[place][-1] + "".join(atoms[place + 1 : place + 3])
        return len(atoms[place]) > 1 and _NEGATION.fullmatch(ending) is not None and ending in self.words

    def _cut_unknown(self, text: str) -> list[str]:
        """Cut text in which no word of the training data is found."""
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
        """True if a mark belongs to the letters or figures around it."""
        before, mark, after = context
        at_edge = not (before and after)
        return context in self.inside and not (at_edge and mark in self.marks and before != "A")


def _atoms(text: str) -> list[str]:
    return [atom for atom, _ in _ATOMS.pre_tokenize_str(text)]


def _kind(atom: str) -> str:
    """The kind of an atom: "A" an initial, "a" other letters, "0" figures; a punctuation mark is its own kind."""
    if not (atom[0].isalnum() or len(atom) > 1 or atom == "_"):
        return atom
    if atom[0].isdigit():
        return "0"
    return "A" if len(atom) == 1 and atom.isupper() else "a"


def _contexts(atoms: Sequence[str]) -> Iterator[Context]:
    """Yield for each atom the kind before it, its own, and the kind after it; marks around it count as nothing."""
    kinds = ["", *map(_kind, atoms), ""]
    around = ["" if kind not in ("A", "a", "0") else kind for kind in kinds]
    return zip(around[:-2], kinds[1:-1], around[2:], strict=True)
