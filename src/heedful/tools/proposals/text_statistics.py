"""Text statistics, for example for one side of a parallel text: lengths, script, question marks and digits."""

import re
from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from heedful.config.schema import FilterConfig
from heedful.data.preparation.filters import LETTER_NAMES, is_written_in

SPACELESS = ("han", "kana")  # scripts without spaces between words
MOSTLY_HAN = 0.95  # share of han in the letters of Chinese; in Japanese, a third to a half are kana
MAX_CHARACTERS = FilterConfig.max_characters  # in a text that training keeps
DIGIT = re.compile(r"\d")
QUESTION = ("?", "？", "؟")


def main_script(letters: Counter[str]) -> str | None:
    """Return the script of at least half of the letters, or None; Chinese with a few kana is han, Japanese is kana."""
    alphabetic = {letter: count for letter, count in letters.items() if letter.isalpha()}
    counts = {
        script: sum(count for letter, count in alphabetic.items() if is_written_in(letter, script))
        for script in LETTER_NAMES
    }
    best = max(counts, key=lambda script: counts[script])
    if best == "kana" and counts["han"] > MOSTLY_HAN * counts["kana"]:
        best = "han"
    return best if alphabetic and 2 * counts[best] >= sum(alphabetic.values()) else None


def is_spaceless(script: str | None, characters: int, words: int) -> bool:
    """Return True if spaces do not separate words, judging by the script, or by more than 15 characters per word."""
    return script in SPACELESS or bool(characters > 15 * words)


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of a list of texts; an array has one value per text, (n,)."""

    script: str | None  # the script of at least half of the letters; None if there is none that filters support
    alphabet: int  # number of distinct characters
    characters: np.ndarray
    words: np.ndarray  # number of words, separated by spaces
    questions: np.ndarray  # True if a text ends in a question mark
    numbers: np.ndarray  # True if it contains a digit

    @property
    def is_spaceless(self) -> bool:
        """True if spaces do not separate the words of the texts; texts that training leaves out do not count."""
        short = self.characters <= MAX_CHARACTERS
        trained = short if short.any() else ~short
        return is_spaceless(self.script, self.characters[trained].sum(), self.words[trained].sum())

    @property
    def tokens(self) -> np.ndarray:
        """Estimated number of tokens with a vocabulary of a few thousand pieces, including <eos>, (n,)."""
        return np.ceil(0.7 * self.characters if self.is_spaceless else 1.3 * self.words) + 1


class StatisticsBuilder:
    """Builder of `TextStatistics`, to which texts are added one by one."""

    def __init__(self) -> None:
        self.characters, self.words = array("I"), array("I")
        self.questions, self.numbers = array("B"), array("B")
        self.letters: Counter[str] = Counter()
        self.letters_of_long: Counter[str] = Counter()  # in texts that training leaves out

    def add(self, text: str) -> None:
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.questions.append(text.rstrip().endswith(QUESTION))
        self.numbers.append(DIGIT.search(text) is not None)
        letters = self.letters if len(text) <= MAX_CHARACTERS else self.letters_of_long
        letters.update(text)

    def build(self) -> TextStatistics:
        columns = (self.characters, self.words, self.questions, self.numbers)
        letters = self.letters or self.letters_of_long
        return TextStatistics(main_script(letters), len(letters), *map(np.array, columns))
