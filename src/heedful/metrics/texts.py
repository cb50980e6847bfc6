"""Metrics for outputs that are texts: exact match, error rates, ROUGE and distinct-n. BLEU is in `translation`.

ROUGE (Lin 2004) measures the overlap of a summary with a reference, distinct-n the diversity of dialogue; both are from
0 to 1. Their tokens are lower-case runs of letters and digits, without stemming, and single Chinese characters. For
ASCII text these are the tokens of the Python package rouge-score, which drops letters such as é and 字.
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
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class Texts(Outputs):
    """Texts that a model generated, and their references.

    Attributes:
        outputs: The generated texts.
        references: The reference of each output.
        language: The language of the references, such as "de", which determines how some metrics split text into words.
        lowercase: True if the model generates lower-cased text, so that case does not count.
        form: The Unicode normal form of the model's outputs.
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
        """Outputs and references as metrics compare them: in a Unicode normal form, and lower-cased if `lowercase`."""
        texts = [[normalize(self.form, text) for text in side] for side in (self.outputs, self.references)]
        outputs, references = [[text.lower() for text in side] for side in texts] if self.lowercase else texts
        return outputs, references

    def pairs(self) -> list[tuple[str, str]]:
        """List each output with its reference, as in `compared`."""
        return list(zip(*self.compared, strict=True))


def equal_words(texts: Texts) -> list[bool]:
    """Return, for each output, True if it equals its reference word for word; the amount of whitespace is ignored."""
    return [output.split() == reference.split() for output, reference in texts.pairs()]


def edit_distance(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return the minimum number of insertions, deletions and substitutions between sequences (Levenshtein 1966).

    Raises:
        InputError: rapidfuzz is not installed.
    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise InputError(f"error rates need rapidfuzz ({error}): pip install 'heedful[audio]'") from error
    return Levenshtein.distance(output, reference)


def word_errors(outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Count the word edits that turn each output into its reference, and the words of the reference, int64, (N, 2).

    Words are separated by whitespace. Case and punctuation count; to ignore them, normalise the texts first.
    """
    return _errors([output.split() for output in outputs], [reference.split() for reference in references], "words")


def character_errors(outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Count character edits and reference characters, like `word_errors`; consecutive spaces count as one."""
    outputs, references = ([" ".join(text.split()) for text in texts] for texts in (outputs, references))
    return _errors(outputs, references, "characters")


def _errors(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], unit: str) -> np.ndarray:
    if len(outputs) != len(references):
        raise InputError(f"{len(outputs):,} outputs for {len(references):,} references; give one output for each")
    lengths = list(map(len, references))
    if not sum(lengths):
        raise InputError(f"there are no {unit} in the references, so the error rate is undefined")
    return np.array([list(map(edit_distance, outputs, references)), lengths], np.int64).T


def error_rate(edits: int, length: int) -> float:
    """Return the number of edits per word or character of the reference; NaN if it is empty."""
    return edits / length if length else math.nan


def rouge_n(summary: str, reference: str, n: int) -> F1Counts:
    """Return the counts for ROUGE-N: n-grams that a summary shares with its reference (Lin 2004, section 2).

    A repeated n-gram counts as often as it occurs in both texts.
    """
    summary_grams, reference_grams = _grams(_tokens(summary), n), _grams(_tokens(reference), n)
    return F1Counts((summary_grams & reference_grams).total(), summary_grams.total(), reference_grams.total())


def rouge_l(summary: str, reference: str) -> F1Counts:
    """Return the counts for ROUGE-L: the longest common subsequence of tokens of two texts (Lin 2004, section 3.1).

    Line breaks are ignored.
    """
    summary_tokens, reference_tokens = _tokens(summary), _tokens(reference)
    return F1Counts(len(_common(reference_tokens, summary_tokens)), len(summary_tokens), len(reference_tokens))


def rouge_lsum(summary: str, reference: str) -> F1Counts:
    """Return the counts for ROUGE-Lsum: the union of longest common subsequences of sentences (Lin 2004, section 3.2).

    Each line is a sentence. A token of the reference counts as correct if it is in a longest common subsequence of its
    sentence and any sentence of the summary; no token counts more often than it occurs in either text.
    """
    summary_lines, reference_lines = ([_tokens(line) for line in text.split("\n")] for text in (summary, reference))
    summary_total, reference_total = (Counter(chain.from_iterable(lines)) for lines in (summary_lines, reference_lines))
    shared: Counter[str] = Counter()
    for sentence in reference_lines:
        indices = {index for other in summary_lines for index in _common(sentence, other)}
        shared.update(sentence[index] for index in indices)
    return F1Counts((shared & summary_total & reference_total).total(), summary_total.total(), reference_total.total())


def sentence_counts(output: str, reference: str) -> F1Counts:
    """Count the sentences that a text shares with its reference, in any order; a repeated sentence counts each time."""
    first, second = (Counter(filter(None, SENTENCE_END.split(text.strip()))) for text in (output, reference))
    return F1Counts((first & second).total(), first.total(), second.total())


def distinct_n(texts: Iterable[str], n: int) -> float:
    """Return distinct-n, the number of distinct n-grams in all texts divided by the number of tokens (Li et al. 2016).

    The result is 0 if no text has a token.
    """
    tokens = [_tokens(text) for text in texts]
    distinct = set(chain.from_iterable(_grams(text, n) for text in tokens))
    return len(distinct) / max(sum(map(len, tokens)), 1)


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(text.lower())


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def _common(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the indices in `first`, in descending order, of a longest common subsequence with `second`.

    If there are several, rouge-score's choice is used, because the union in ROUGE-Lsum depends on it.
    """
    # lengths[i][j]: length of the longest common subsequence of first[:i] and second[:j]
    lengths = [[0] * (len(second) + 1)]
    for token in first:
        above, row = lengths[-1], [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if token == other else max(above[j + 1], row[j]))
        lengths.append(row)

    indices: list[int] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            indices.append(i)
        # On a tie, a token of `first` is skipped, as in rouge-score's `_backtrack_norec`.
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return indices


EXACT_MATCH = per_example(equal_words)
# Edits and words are summed over all texts before the division, so that each word has the same weight.
WER = of_sums(lambda texts: word_errors(*texts.compared), error_rate, lower_is_better=True)
CER = of_sums(lambda texts: character_errors(*texts.compared), error_rate, lower_is_better=True)
ROUGE_1 = per_example(lambda texts: [rouge_n(output, reference, 1).f1 for output, reference in texts.pairs()])
ROUGE_2 = per_example(lambda texts: [rouge_n(output, reference, 2).f1 for output, reference in texts.pairs()])
ROUGE_L = per_example(lambda texts: [rouge_l(*pair).f1 for pair in texts.pairs()])
SENTENCE_F1 = of_sums(
    lambda texts: np.array([sentence_counts(*pair) for pair in texts.pairs()], np.int64),
    lambda shared, predicted, expected: F1Counts(shared, predicted, expected).f1,
)
DISTINCT_1 = Metric(lambda texts: distinct_n(texts.compared[0], 1), resampled=False)
DISTINCT_2 = Metric(lambda texts: distinct_n(texts.compared[0], 2), resampled=False)
