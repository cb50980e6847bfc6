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
    """Count the correct, predicted and expected spans.

    Precision, recall and F1 equal those of the conlleval script, which gives percentages. Tags that violate the tagging
    scheme are split into spans as in conlleval.
    """
    return F1Counts(*(counts.total() for counts in _count(predicted, expected)))


def span_tallies(predicted: Tags, expected: Tags) -> dict[str, F1Counts]:
    """Count the tagged spans of each kind, for precision, recall and F1; the kinds are in alphabetical order."""
    correct, predictions, references = _count(predicted, expected)
    kinds = sorted(predictions | references)
    return {kind: F1Counts(correct[kind], predictions[kind], references[kind]) for kind in kinds}


def _count(predicted: Tags, expected: Tags) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the correct, the predicted and the expected spans of each kind."""
    if len(predicted) != len(expected):
        raise InputError(f"{len(predicted)} sentences were tagged, but {len(expected)} were expected")
    correct, predictions, references = Counter[str](), Counter[str](), Counter[str]()
    for number, (tags, reference) in enumerate(zip(predicted, expected, strict=True), start=1):
        if len(tags) != len(reference):
            raise InputError(f"sentence {number} has {len(reference)} words, but {len(tags)} tags were predicted")
        # Spans are equal only if beginning, end and kind are equal: half of a name is wrong.
        predicted_spans, expected_spans = set(spans(tags)), set(spans(reference))
        correct.update(span.kind for span in predicted_spans & expected_spans)
        predictions.update(span.kind for span in predicted_spans)
        references.update(span.kind for span in expected_spans)
    return correct, predictions, references


@dataclass(frozen=True)
class TaggedSentences(Outputs):
    """Predicted and expected tag of each word in each sentence, and all tags of the task."""

    kind = "tags"
    columns = ("predicted", "expected")

    predicted: Sequence[Sequence[str]]
    expected: Sequence[Sequence[str]]
    tags: Sequence[str]

    @cached_property
    def span_counts(self) -> np.ndarray:
        """Counts of correct, predicted and expected spans in each of N sentences, int64, (N, 3)."""
        pairs = zip(self.predicted, self.expected, strict=True)
        return np.array([span_tally([predicted], [expected]) for predicted, expected in pairs])

    def report(self) -> ClassReport:
        """Return the report with scores for each kind of span, and the confusion matrix of words by kind of span."""
        kinds = list(dict.fromkeys(tag[2:] for tag in self.tags if tag != "O"))
        tallies = span_tallies(self.predicted, self.expected)
        counts = {kind: tallies.get(kind, F1Counts(0, 0, 0)) for kind in kinds}
        labels = ("O", *kinds)
        # The matrix is about kinds: B-person and I-person are both "person". Only "O" has no kind.
        numbers = {tag: labels.index(tag[2:] or tag) for tag in {"O", *self.tags}}
        predicted = [numbers[tag] for tags in self.predicted for tag in tags]
        expected = [numbers[tag] for tags in self.expected for tag in tags]
        return ClassReport(counts, labels, confusion_matrix(predicted, expected, len(labels)), "words")


def word_counts(sentences: TaggedSentences) -> np.ndarray:
    """Count, for each of N sentences, the words whose tag is correct, and all words, int64, (N, 2)."""
    pairs = zip(sentences.predicted, sentences.expected, strict=True)
    return np.array([(sum(map(str.__eq__, predicted, expected)), len(expected)) for predicted, expected in pairs])


F1 = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).f1)
PRECISION = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).precision)
RECALL = of_sums(attrgetter("span_counts"), lambda *counts: F1Counts(*counts).recall)
ACCURACY = of_sums(word_counts, lambda right, words: right / words)
