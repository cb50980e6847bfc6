"""Outputs that are texts, and their metrics: exact match, error rates, ROUGE and distinct-n. BLEU is in `translation`.

ROUGE (Lin 2004) is the overlap of a summary with a reference, distinct-n the variety of dialogue; both are from 0 to 1.
Their tokens are lower-case runs of letters and digits, without stemming, and Chinese characters each. For ASCII text
that is what the Python package rouge-score does; it drops letters such as é and 字, which are kept here.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal
from unicodedata import normalize

import numpy as np

from heedful.errors import InputError
from heedful.metrics.classes import F1Counts
from heedful.metrics.metric import Metric, Outputs, of_sums, per_example

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
TOKEN = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")


@dataclass(frozen=True)
class Texts(Outputs):
    """Texts that a model wrote, and their references.

    Attributes:
        outputs: The texts.
        references: What each should be.
        language: The language of the references, as in "de"; some metrics cut text into words by it.
        lowercase: True if the model writes lower-cased text, so that case does not count.
        form: The normal form in which the model writes.
    """

    kind = "texts"
    columns = ("outputs", "references")

    outputs: Sequence[str]
    references: Sequence[str]
    language: str = ""
    lowercase: bool = False
    form: Literal["NFC", "NFKC"] = "NFC"

    @cached_property
    def compared(self) -> tuple[list[str], list[str]]:
        """Outputs and references as metrics compare them: in one normal form and, if so, in lower case."""
        texts = [[normalize(self.form, text) for text in side] for side in (self.outputs, self.references)]
        outputs, references = [[text.lower() for text in side] for side in texts] if self.lowercase else texts
        return outputs, references

    def pairs(self) -> list[tuple[str, str]]:
        """List each output with its reference, as metrics compare them."""
        return list(zip(*self.compared, strict=True))


def equal_words(texts: Texts) -> list[bool]:
    """True for each output that equals its reference word for word; spaces do not count."""
    return [output.split() == reference.split() for output, reference in texts.pairs()]


def edit_distance(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and substitutions that make both equal (Levenshtein 1966).

    Raises:
        InputError: rapidfuzz is not installed.
    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise InputError(f"error rates need rapidfuzz ({error}): pip install 'heedful[audio]'") from error
    return Levenshtein.distance(output, reference)


def word_errors(outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Count the edits of words that turn each output into its reference, and the words of the reference, int64, (N, 2).

    Words are separated by spaces. Case and punctuation count: a text that is to be compared without them is stripped of
    them before.

    Raises:
        InputError: There are not as many outputs as references, or no words in these.
    """
    return _errors([output.split() for output in outputs], [reference.split() for reference in references], "words")


def character_errors(outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Count the edits of characters, and those of the reference, as `word_errors`; any space counts as one."""
    ours, theirs = ([" ".join(text.split()) for text in texts] for texts in (outputs, references))
    return _errors(ours, theirs, "characters")


def _errors(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], unit: str) -> np.ndarray:
    if len(outputs) != len(references):
        raise InputError(f"{len(outputs):,} outputs for {len(references):,} references: there must be one for each")
    lengths = list(map(len, references))
    if not sum(lengths):
        raise InputError(f"there are no {unit} in the references, so that there is no error rate")
    return np.array([list(map(edit_distance, outputs, references)), lengths], np.int64).T


def error_rate(edits: int, length: int) -> float:
    """Error rate of outputs with so many edits; NaN without a reference to compare them with."""
    return edits / length if length else math.nan


def rouge_n(summary: str, reference: str, n: int) -> F1Counts:
    """Return ROUGE-N: n-grams that a summary shares with its reference, each as often as in both (section 2)."""
    ours, theirs = _grams(_tokens(summary), n), _grams(_tokens(reference), n)
    return F1Counts((ours & theirs).total(), ours.total(), theirs.total())


def rouge_l(summary: str, reference: str) -> F1Counts:
    """Return ROUGE-L: the longest common subsequence of the tokens of two texts, line ends ignored (section 3.1)."""
    ours, theirs = _tokens(summary), _tokens(reference)
    return F1Counts(len(_common(theirs, ours)), len(ours), len(theirs))


def rouge_lsum(summary: str, reference: str) -> F1Counts:
    """Return ROUGE-Lsum: the union of longest common subsequences by sentence, one sentence per line (section 3.2).

    A token of the reference counts as correct if it is in a longest common subsequence of its sentence and any
    sentence of the summary; no token counts more often than it occurs in either text.
    """
    ours, theirs = ([_tokens(line) for line in text.split("\n")] for text in (summary, reference))
    our_tokens, their_tokens = (Counter(chain.from_iterable(lines)) for lines in (ours, theirs))
    shared: Counter[str] = Counter()
    for sentence in theirs:
        places = {place for other in ours for place in _common(sentence, other)}
        shared.update(sentence[place] for place in places)
    return F1Counts((shared & our_tokens & their_tokens).total(), our_tokens.total(), their_tokens.total())


def distinct_n(texts: Iterable[str], n: int) -> float:
    """Return distinct-n, the number of different n-grams of all texts divided by their tokens (Li et al. 2016).

    The result is 0 if no text has a token.
    """
    tokens = [_tokens(text) for text in texts]
    different = set(chain.from_iterable(_grams(text, n) for text in tokens))
    return len(different) / max(sum(map(len, tokens)), 1)


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(text.lower())


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def _common(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the indices in `first`, in falling order, of a longest common subsequence with `second`.

    If there are several, rouge-score's choice is taken, as the union in ROUGE-Lsum depends on it.
    """
    # lengths[i][j]: of the longest common subsequence of the first i and the first j tokens
    lengths = [[0] * (len(second) + 1)]
    for token in first:
        above, row = lengths[-1], [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if token == other else max(above[j + 1], row[j]))
        lengths.append(row)

    places: list[int] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places


EXACT_MATCH = per_example(equal_words)
WER = of_sums(lambda texts: word_errors(*texts.compared), error_rate, lower_is_better=True)
CER = of_sums(lambda texts: character_errors(*texts.compared), error_rate, lower_is_better=True)
ROUGE_1 = per_example(lambda texts: [rouge_n(output, reference, 1).f1 for output, reference in texts.pairs()])
ROUGE_2 = per_example(lambda texts: [rouge_n(output, reference, 2).f1 for output, reference in texts.pairs()])
ROUGE_L = per_example(lambda texts: [rouge_l(*pair).f1 for pair in texts.pairs()])
DISTINCT_1 = Metric(lambda texts: distinct_n(texts.compared[0], 1), resampled=False)
DISTINCT_2 = Metric(lambda texts: distinct_n(texts.compared[0], 2), resampled=False)
