"""Span F1 of tagging, as for named entities: both ends and the kind must match (Tjong Kim Sang & De Meulder 2003)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from heedful.data.readers.tagged import spans
from heedful.errors import InputError
from heedful.metrics.classes import ClassReport, F1Counts, confusion_matrix
from heedful.metrics.metric import Outputs, of_sums

Tags = Sequence[Sequence[str]]


def span_tally(predicted: Tags, expected: Tags) -> F1Counts:
    """Return precision, recall and F1 over all tagged spans, as the script conlleval does (there from 0 to 100).

    Tags of a sentence that break a scheme are cut into spans by conlleval's convention.

    Raises:
        InputError: The numbers of sentences, or of tags in a sentence, differ.
    """
    return F1Counts(*(counts.total() for counts in _count(predicted, expected)))


def span_tallies(predicted: Tags, expected: Tags) -> dict[str, F1Counts]:
    """Return precision, recall and F1 of tagged spans for each kind of span, by kind in alphabetical order."""
    correct, ours, theirs = _count(predicted, expected)
    return {kind: F1Counts(correct[kind], ours[kind], theirs[kind]) for kind in sorted(ours | theirs)}


def _count(predicted: Tags, expected: Tags) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the correct, the predicted and the expected spans of each kind."""
    if len(predicted) != len(expected):
        raise InputError(f"{len(predicted)} sentences were tagged, but there are {len(expected)}")
    correct, ours, theirs = Counter[str](), Counter[str](), Counter[str]()
    for number, (tags, reference) in enumerate(zip(predicted, expected, strict=True), start=1):
        if len(tags) != len(reference):
            raise InputError(f"sentence {number} has {len(reference)} words, but {len(tags)} tags were predicted")
        our_spans, their_spans = set(spans(tags)), set(spans(reference))
        correct.update(span.kind for span in our_spans & their_spans)
        ours.update(span.kind for span in our_spans)
        theirs.update(span.kind for span in their_spans)
    return correct, ours, theirs


@dataclass(frozen=True)
class TaggedSentences(Outputs):
    """Predicted and expected tags of each word of each sentence, and all tags that there are."""

    kind = "tags"
    columns = ("predicted", "expected")

    predicted: Sequence[Sequence[str]]
    expected: Sequence[Sequence[str]]
    tags: Sequence[str]

    @cached_property
    def span_counts(self) -> np.ndarray:
        """The right, predicted and expected spans of each of N sentences, int64, (N, 3)."""
        pairs = zip(self.predicted, self.expected, strict=True)
        return np.array([span_tally([predicted], [expected]) for predicted, expected in pairs])

    def report(self) -> ClassReport:
        """Make the report of each kind of span, and the confusion matrix of the kinds of words."""
        kinds = list(dict.fromkeys(tag[2:] for tag in self.tags if tag != "O"))
        tallies = span_tallies(self.predicted, self.expected)
        counts = {kind: tallies.get(kind, F1Counts(0, 0, 0)) for kind in kinds}
        labels = ("O", *kinds)
        numbers = {tag: labels.index(tag[2:] or tag) for tag in {"O", *self.tags}}
        ours, theirs = ([numbers[tag] for row in rows for tag in row] for rows in (self.predicted, self.expected))
        return ClassReport(counts, labels, confusion_matrix(ours, theirs, len(labels)), "words")


def word_counts(sentences: TaggedSentences) -> np.ndarray:
    """Count the words of each of N sentences whose tag is right, and all of its words, int64, (N, 2)."""
    pairs = zip(sentences.predicted, sentences.expected, strict=True)
    return np.array([(sum(map(str.__eq__, ours, theirs)), len(theirs)) for ours, theirs in pairs])


F1 = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).f1)
PRECISION = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).precision)
RECALL = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).recall)
ACCURACY = of_sums(word_counts, lambda right, words: right / words)
