"""Samples of outputs side by side: the first of the test set, and the sentences on which systems differ most."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.compare.job import TestResult
from heedful.compare.statistics import TextSample

FIRST = 4
MOST_DIFFERENT = 8
LONGEST = 1000  # characters of a text that are shown


@dataclass(frozen=True)
class Sample:
    """A sentence of the test set with the outputs of all systems.

    Attributes:
        number: number of the sentence in the test set, from 1.
        source: the source text.
        reference: the expected text.
        outputs: the output of each system, by name.
        scores: the score of each output, by the name of the system.
    """

    number: int
    source: str
    reference: str
    outputs: dict[str, str]
    scores: dict[str, float]


def choose_samples(
    tests: Mapping[str, TestResult], samples: Mapping[str, TextSample]
) -> tuple[list[Sample], list[Sample]]:
    """Choose sentences to show: the first of the test set, and those whose scores differ most between the systems.

    Args:
        tests: the test results of systems that write texts, by name.
        samples: the same results as samples.
    """
    each = {name: sample.each() for name, sample in samples.items()}
    count = min((len(scores) for scores in each.values()), default=0)

    def difference(index: int) -> float:
        scores = [own[index] for own in each.values()]
        return max(scores) - min(scores)

    by_difference = sorted(range(count), key=lambda index: (-difference(index), index))
    different = [index for index in by_difference[:MOST_DIFFERENT] if difference(index) > 0]
    return [sample_at(i, tests, each) for i in range(min(FIRST, count))], [sample_at(i, tests, each) for i in different]


def sample_at(index: int, tests: Mapping[str, TestResult], each: Mapping[str, list[float]]) -> Sample:
    """Return a sentence of the test set with the outputs of all systems."""
    texts = {name: test.texts for name, test in tests.items() if test.texts}
    first = next(iter(texts.values()))
    outputs = {name: beginning(own["output"][index]) for name, own in texts.items()}
    scores = {name: own[index] for name, own in each.items()}
    return Sample(index + 1, beginning(first["source"][index]), beginning(first["reference"][index]), outputs, scores)


def beginning(text: str) -> str:
    """Return a text or, of a long document, the beginning."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
