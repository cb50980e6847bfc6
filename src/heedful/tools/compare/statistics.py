"""Statistics of test results: confidence intervals, significance, group scores, and samples side by side."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from heedful.metrics import LOWER_CASED, Comparison, ScoreInterval, Scoring, is_lower_cased, paired_bootstrap, score
from heedful.metrics.bootstrap import BootstrapScores, bootstrap_scores, compare_bootstraps, mean_scores
from heedful.tools.compare.job import TestResult

METRICS = ("bleu", "chrf")  # for translations


class Sample(ABC):
    """A system's results on the examples of a test set, from which intervals are estimated by resampling."""

    @abstractmethod
    def against(self, baseline: Any) -> list[Comparison]:
        """Compare the system with a baseline by paired bootstrap resampling; return one comparison per score."""

    def intervals(self) -> dict[str, ScoreInterval]:
        return {comparison.name: comparison.system for comparison in self.against(self)}


@dataclass(frozen=True)
class BootstrapSample(Sample):
    """Results stored as scores on resamples of the whole test set."""

    draws: BootstrapScores

    def against(self, baseline: "BootstrapSample") -> list[Comparison]:
        return compare_bootstraps(baseline.draws, self.draws)


class TextSample(Sample):
    """Results that are texts, each with its own score."""

    @abstractmethod
    def part(self, indices: Sequence[int]) -> "TextSample":
        """Return the results for some of the texts."""

    @abstractmethod
    def each(self) -> list[float]:
        """Score each text separately."""


@dataclass(frozen=True)
class Translations(TextSample):
    """Translations with their references, and the metrics to score them."""

    outputs: tuple[str, ...]
    references: tuple[str, ...]
    language: str
    metrics: tuple[str, ...] = METRICS

    def against(self, baseline: "Translations") -> list[Comparison]:
        return compare_translations(baseline, self)

    def part(self, indices: Sequence[int]) -> "Translations":
        """Return the translations of some sentences, with only the first metric, because each metric is slow."""
        outputs, references = (tuple(texts[i] for i in indices) for texts in (self.outputs, self.references))
        return Translations(outputs, references, self.language, self.metrics[:1])

    def each(self) -> list[float]:
        """Score each translation by chrF, which, unlike BLEU, is meaningful for single sentences."""
        settings = Scoring(metrics=("chrf",), language=self.language)
        pairs = zip(self.outputs, self.references, strict=True)
        return [score([output], [[reference]], settings)[0].value for output, reference in pairs]


@cache  # a report is written after every system, and most of it has been computed before
def compare_translations(baseline: Translations, system: Translations) -> list[Comparison]:
    """Compare a system with a baseline by the metrics of both, against the references of the system."""
    settings = Scoring(metrics=tuple(dict.fromkeys([*system.metrics, *baseline.metrics])), language=system.language)
    return paired_bootstrap(baseline.outputs, system.outputs, [system.references], settings)


@dataclass(frozen=True)
class ScoredTexts(TextSample):
    """Texts with scores whose means are the scores of the test set, such as ROUGE or exact match."""

    per_text: dict[str, list[float]]

    def against(self, baseline: "ScoredTexts") -> list[Comparison]:
        return compare_bootstraps(*(bootstrap_scores(mean_scores(sample.per_text)) for sample in (baseline, self)))

    def part(self, indices: Sequence[int]) -> "ScoredTexts":
        return ScoredTexts({name: np.array(values)[list(indices)].tolist() for name, values in self.per_text.items()})

    def each(self) -> list[float]:
        return next(iter(self.per_text.values()))


def metrics_of(outputs: Sequence[str], references: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics for translations, including case-insensitive ones if the translations are lowercased."""
    return (*METRICS, *LOWER_CASED) if is_lower_cased(outputs, [references]) else METRICS


def sample_of(test: TestResult) -> Sample | None:
    """Return test results as a sample of examples; None if the scores are not computed from individual examples."""
    if test.texts and test.language is not None:
        outputs, references = tuple(test.texts["output"]), tuple(test.texts["reference"])
        return Translations(outputs, references, test.language, metrics_of(outputs, references))
    if test.figures:
        return ScoredTexts(test.figures)
    return BootstrapSample(BootstrapScores(**test.draws)) if test.draws else None


MAX_GROUPS = 5
MIN_SENTENCES = 20  # in a group


@dataclass(frozen=True)
class Group:
    """Sentences of a test set with similar values of a property, and the score of each system on them."""

    low: int  # the minimum of the property
    high: int  # its maximum
    count: int  # number of sentences
    scores: dict[str, ScoreInterval]  # the score on the group with its 95% interval, by system


def group_scores(values: Sequence[int], samples: Mapping[str, TextSample], score: str) -> list[Group]:
    """Divide a test set into groups of about equal size by a property of its sentences, and score each group."""
    groups = []
    for sentences in divide_sentences(values):
        scores = {name: sample.part(sentences).intervals()[score] for name, sample in samples.items()}
        inside = [values[i] for i in sentences]
        groups.append(Group(min(inside), max(inside), len(sentences), scores))
    return groups


def divide_sentences(values: Sequence[int]) -> list[list[int]]:
    """Divide sentences by a property into at most `MAX_GROUPS` groups; sentences with equal values stay together.

    A group of fewer than `MIN_SENTENCES` is merged into the previous group or, if it is the first, into the next. The
    result is empty if only one group would remain.
    """
    count = min(MAX_GROUPS, len(values) // MIN_SENTENCES)
    if count < 2:
        return []
    bounds = np.unique(np.quantile(values, np.arange(1, count) / count, method="higher"))
    group_indices = np.searchsorted(bounds, values, side="right")
    groups: list[list[int]] = []
    for index in range(len(bounds) + 1):
        group = np.flatnonzero(group_indices == index).tolist()
        if groups and min(len(group), len(groups[-1])) < MIN_SENTENCES:
            groups[-1] += group
        else:
            groups.append(group)
    return groups if len(groups) > 1 else []


FIRST_SAMPLES = 4
MAX_DIFFERENT = 8
MAX_CHARACTERS = 1000  # of a text in the report


@dataclass(frozen=True)
class SampleOutputs:
    number: int  # number of the sentence in the test set, from 1
    source: str
    reference: str  # the expected text
    outputs: dict[str, str]  # the output of each system, by name
    scores: dict[str, float]  # the score of each output, by the name of the system


def choose_samples(
    tests: Mapping[str, TestResult], samples: Mapping[str, TextSample]
) -> tuple[list[SampleOutputs], list[SampleOutputs]]:
    """Choose sentences to show: the first of the test set, and those whose scores differ most between the systems."""
    each = {name: sample.each() for name, sample in samples.items()}
    count = min((len(scores) for scores in each.values()), default=0)
    texts = {name: test.texts for name, test in tests.items() if test.texts}

    def difference(index: int) -> float:
        scores = [own[index] for own in each.values()]
        return max(scores) - min(scores)

    def beginning(text: str) -> str:
        return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 2]} …"

    def sample(index: int) -> SampleOutputs:
        source, reference = (next(iter(texts.values()))[key][index] for key in ("source", "reference"))
        outputs = {name: beginning(own["output"][index]) for name, own in texts.items()}
        scores = {name: own[index] for name, own in each.items()}
        return SampleOutputs(index + 1, beginning(source), beginning(reference), outputs, scores)

    by_difference = sorted(range(count), key=lambda index: (-difference(index), index))
    different = [index for index in by_difference[:MAX_DIFFERENT] if difference(index) > 0]
    return list(map(sample, range(min(FIRST_SAMPLES, count)))), list(map(sample, different))
