"""Metrics for outputs that are constituency trees in brackets, such as (S (NP the cat) (VP is sleeping) .)."""

import re
from collections import Counter

import numpy as np

from heedful.metrics.classes import F1Counts
from heedful.metrics.metric import Metric, mean, of_sums

TOKEN = re.compile(r"\([^\s()]*|\)|[^\s()]+")

Constituent = tuple[str, int, int]  # label, and the numbers of its first word and of the word after its last one


def constituents(tree: str) -> tuple[Counter[Constituent], list[str]] | None:
    """Return the constituents and the words of a tree; None if its brackets do not form one tree."""
    spans: Counter[Constituent] = Counter()
    words: list[str] = []
    open_brackets: list[tuple[str, int]] = []
    for token in TOKEN.findall(tree):
        if not open_brackets and (spans or not token.startswith("(")):
            return None  # something is outside the root
        if token.startswith("("):
            open_brackets.append((token[1:], len(words)))
        elif token == ")":
            label, begin = open_brackets.pop()
            spans[label, begin, len(words)] += 1
        else:
            words.append(token)
    return None if open_brackets or not spans else (spans, words)


def bracket_counts(output: str, reference: str) -> F1Counts:
    """Count the labelled constituents that a tree shares with its reference (PARSEVAL, Black et al. 1991).

    An output that is not a tree with the words of its reference has no constituents.
    """
    expected, predicted = constituents(reference), constituents(output)
    total = expected[0].total() if expected else 0
    if expected is None or predicted is None or predicted[1] != expected[1]:
        return F1Counts(0, 0, total)
    return F1Counts((predicted[0] & expected[0]).total(), predicted[0].total(), total)


# As in evalb, constituents are summed over all trees before the division.
BRACKET_F1 = of_sums(
    lambda texts: np.array([bracket_counts(*pair) for pair in texts.pairs()], np.int64),
    lambda correct, predicted, expected: F1Counts(correct, predicted, expected).f1,
)
INVALID_TREES = Metric(
    lambda texts: [not bracket_counts(*pair).predicted for pair in texts.pairs()], mean, lower_is_better=True
)
