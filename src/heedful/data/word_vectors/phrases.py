"""Phrases: neighbouring words that often occur together become one word (Mikolov et al. 2013b, section 4)."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise

JOINER = "_"
MOST_PAIRS = 1 << 22  # pairs that are counted at a time; the rarest are forgotten when there are more

Pair = tuple[str, str]


def join(words: Sequence[str], phrases: Container[str]) -> list[str]:
    """Join the neighbouring words of a document that form a phrase, from left to right.

    A phrase that was just made is not joined to the next word: longer phrases come from further passes.
    """
    joined: list[str] = []
    is_open = False  # True if the last of `joined` is a word that may begin a phrase
    for word in words:
        if is_open and (phrase := joined[-1] + JOINER + word) in phrases:
            joined[-1] = phrase
        else:
            joined.append(word)
            phrase = ""
        is_open = not phrase
    return joined


def join_all(documents: Iterable[Sequence[str]], passes: Iterable[Container[str]]) -> Iterator[Sequence[str]]:
    """Yield documents with their phrases joined, in several passes with phrases of their own."""
    passes = list(passes)
    return (reduce(join, passes, words) for words in documents)


def find_phrases(documents: Iterable[Sequence[str]], threshold: float, discount: int) -> frozenset[str]:
    """Find the pairs of neighbouring words whose score is above a threshold; return them joined, as in "new_york".

    score(a, b) = (count(ab) - discount) / (count(a) count(b)) x N, formula 6 of the paper times the number N of words,
    as in the authors' program, so that a threshold means the same in texts of any size.

    Args:
        documents: The words of each document; pairs do not cross documents.
        threshold: The score that a phrase exceeds, such as 100.
        discount: Taken off the count of each pair, so that rare words form no phrases.
    """
    words: Counter[str] = Counter()
    found: Counter[Pair] = Counter()
    least = 1
    for document in documents:
        words.update(document)
        found.update(pairwise(document))
        while len(found) > MOST_PAIRS:
            least += 1
            found = Counter({pair: count for pair, count in found.items() if count >= least})
    total = words.total()
    return frozenset(
        a + JOINER + b
        for (a, b), count in found.items()
        if (count - discount) * total > threshold * words[a] * words[b]
    )
