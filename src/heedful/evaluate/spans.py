"""Span F1 of tagging, as for named entities: both ends and the kind must match (Tjong Kim Sang & De Meulder 2003)."""

from collections import Counter
from collections.abc import Sequence

from heedful.data.readers.tagged import spans
from heedful.errors import InputError
from heedful.evaluate.f1 import F1Counts

Tags = Sequence[Sequence[str]]


def span_tally(predicted: Tags, expected: Tags) -> F1Counts:
    """Return precision, recall and F1 over all tagged spans, as the script conlleval does (there from 0 to 100).

    Args:
        predicted: The predicted tags of each sentence; sequences that break a scheme are cut by conlleval's convention.
        expected: The correct tags of each sentence.

    Raises:
        InputError: The numbers of sentences, or of tags in a sentence, differ.
    """
    return F1Counts(*(counts.total() for counts in _count(predicted, expected)))


def span_tallies(predicted: Tags, expected: Tags) -> dict[str, F1Counts]:
    """Return precision, recall and F1 of tagged spans for each kind of span, by kind in alphabetical order.

    Raises:
        InputError: The numbers of sentences, or of tags in a sentence, differ.
    """
    correct, found, wanted = _count(predicted, expected)
    return {kind: F1Counts(correct[kind], found[kind], wanted[kind]) for kind in sorted(found | wanted)}


def _count(predicted: Tags, expected: Tags) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the correct, the predicted and the expected spans of each kind."""
    if len(predicted) != len(expected):
        raise InputError(f"{len(predicted)} sentences were tagged, but there are {len(expected)}")
    correct, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    for number, (ours, theirs) in enumerate(zip(predicted, expected, strict=True), start=1):
        if len(ours) != len(theirs):
            raise InputError(f"sentence {number} has {len(theirs)} words, but {len(ours)} tags were predicted")
        here, there = set(spans(ours)), set(spans(theirs))
        correct.update(span.kind for span in here & there)
        found.update(span.kind for span in here)
        wanted.update(span.kind for span in there)
    return correct, found, wanted
