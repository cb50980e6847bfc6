"""Metrics for outputs that are constituency trees in brackets, such as (S (NP the cat) (VP is sleeping) .)."""

import re
from collections import Counter

import numpy as np

from heedful.metrics.classes import F1Counts
from heedful.metrics.metric import of_sums

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

    A tree that is invalid, or has other words than its reference, has no constituents.
    """
    expected, predicted = constituents(reference), constituents(output)
    total = expected[0].total() if expected else 0
    if expected is None or predicted is None or predicted[1] != expected[1]:
        return F1Counts(0, 0, total)
    return F1Counts((predicted[0] & expected[0]).total(), predicted[0].total(), total)


def is_invalid(output: str, reference: str) -> bool:
    """Return True if an output is not a tree with the words of its reference."""
    expected, predicted = constituents(reference), constituents(output)
    return predicted is None or (expected is not None and predicted[1] != expected[1])


# As in evalb, constituents are summed over all trees before the division.
BRACKET_F1 = of_sums(
    lambda texts: np.array([bracket_counts(*pair) for pair in texts.pairs()], np.int64),
    lambda correct, predicted, expected: F1Counts(correct, predicted, expected).f1,
)
INVALID_TREES = of_sums(
    lambda texts: np.array([(is_invalid(*pair), 1) for pair in texts.pairs()], np.int64),
    lambda invalid, trees: invalid / trees,
    lower_is_better=True,
)
