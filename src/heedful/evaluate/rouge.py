"""ROUGE, the overlap of a summary with a reference (Lin 2004), and distinct-n, the variety of dialogue; from 0 to 1.

Tokens are lower-case runs of letters and digits, without stemming, and Chinese characters each. For ASCII text that is
what the Python package rouge-score does; it drops letters such as é and 字, which are kept here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from heedful.evaluate.f1 import F1Counts
from heedful.evaluate.metrics import Metric, per_example

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
TOKEN = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")


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
    ours_left, theirs_left = (Counter(chain.from_iterable(lines)) for lines in (ours, theirs))
    met = Counter(token for sentence in theirs for token in _union(sentence, ours))
    return F1Counts((met & ours_left & theirs_left).total(), ours_left.total(), theirs_left.total())


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


def _union(sentence: Sequence[str], summary: Sequence[Sequence[str]]) -> list[str]:
    met = {place for other in summary for place in _common(sentence, other)}
    return [sentence[place] for place in met]


def _common(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the indices in `first`, in falling order, of a longest common subsequence with `second`.

    If there are several, rouge-score's choice is taken, as the union in ROUGE-Lsum depends on it.
    """
    lengths = _lengths(first, second)
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


def _lengths(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return a table of the lengths of the longest common subsequence of the first i and first j tokens, at [i][j]."""
    table = [[0] * (len(second) + 1)]
    for token in first:
        above, row = table[-1], [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if token == other else max(above[j + 1], row[j]))
        table.append(row)
    return table


ROUGE_1 = per_example(lambda texts: [rouge_n(*pair, 1).f1 for pair in texts.pairs()])
ROUGE_2 = per_example(lambda texts: [rouge_n(*pair, 2).f1 for pair in texts.pairs()])
ROUGE_L = per_example(lambda texts: [rouge_l(*pair).f1 for pair in texts.pairs()])
DISTINCT_1 = Metric(lambda texts: distinct_n(texts.compared[0], 1), resampled=False)
DISTINCT_2 = Metric(lambda texts: distinct_n(texts.compared[0], 2), resampled=False)
