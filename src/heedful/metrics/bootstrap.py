"""Bootstrap resampling (Efron & Tibshirani 1993): confidence intervals of scores, and paired significance tests."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from heedful.errors import InputError
from heedful.metrics.classes import ClassReport
from heedful.metrics.metric import Metric, Outputs, lower_is_better, mean
from heedful.wording import counted

SIGNIFICANCE_LEVEL = 0.05  # p-values below this are significant
MIN_EXAMPLES = 100  # with fewer, the p-values of a bootstrap are unreliable


class Interval(NamedTuple):
    """Score on a test set, with the bounds of its bootstrap confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ScoreInterval:
    """Score of a system on a test set, with the mean and half the width of the 95% interval over resamples."""

    value: float
    mean: float
    interval: float


@dataclass(frozen=True)
class Comparison:
    """Comparison of two systems under one metric.

    Attributes:
        name: Name of the metric.
        baseline: Score of the baseline system.
        system: Score of the other system, on the same resamples.
        difference: Score of the system minus score of the baseline, on each resample.
        p_value: Estimated probability that chance alone produces a difference at least this large.
        signature: Sacrebleu's signature, for translation metrics.
        lower_is_better: True if a lower score is better.
    """

    name: str
    baseline: ScoreInterval
    system: ScoreInterval
    difference: ScoreInterval
    p_value: float
    signature: str = ""
    lower_is_better: bool = False

    @property
    def is_better(self) -> bool:
        """True if the system has a better score than the baseline."""
        gain = self.system.value - self.baseline.value
        return gain < 0 if self.lower_is_better else gain > 0

    @property
    def is_significant(self) -> bool:
        """True if the difference between the two systems is statistically significant: the p-value is below 0.05."""
        return self.p_value < SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class ExampleScores:
    """Results on each example of a test set, from which the scores of any resample of the examples are computed.

    Attributes:
        count: The number of examples or, if only groups of examples are independent, of groups.
        measure: Computes the scores, by name, of examples or groups given by their indices, int64, which may repeat.
        classes: The report with scores for each class; None if the outputs are not classes.
        whole: All scores of the whole test set, by name, including those that cannot be resampled; None if `measure`
            computes all of them.
        each: The score of each example, by name, for the scores that are means over examples.
    """

    count: int
    measure: Callable[[np.ndarray], dict[str, float]]
    classes: ClassReport | None = None
    whole: dict[str, float] | None = None
    each: Mapping[str, list[float]] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """Scores of the whole test set, by name, except those that cannot be resampled."""
        return self.measure(np.arange(self.count))


def example_scores(outputs: Outputs, metrics: Mapping[str, Metric]) -> ExampleScores:
    """Compute metrics, given by score name, for outputs on a test set, so that any resample of it can be scored."""
    # What can be computed example by example is computed once; a resample then only combines rows.
    rows = {name: np.asarray(metric.compute(outputs)) for name, metric in metrics.items() if metric.total}

    def measure(names: Collection[str], examples: np.ndarray) -> dict[str, float]:
        # Selecting outputs is slow, and needed only for metrics that do not have a row for each example.
        selection = outputs if rows.keys() >= set(names) else outputs.select(examples)
        scores = {name: metrics[name].compute(selection) for name in names if name not in rows}
        scores |= {name: total(rows[name][examples]) for name in names if (total := metrics[name].total)}
        return {name: scores[name] for name in names if scores[name] is not None}

    groups = outputs.groups()
    members = None  # the examples of each group
    if groups is not None:
        # Sorted by group, and split where the next group begins.
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    repeatable = [name for name, metric in metrics.items() if metric.resampled]

    def resample(numbers: np.ndarray) -> dict[str, float]:
        examples = numbers if members is None else np.concatenate([members[group] for group in numbers.tolist()])
        return measure(repeatable, examples)

    return ExampleScores(
        count=len(outputs) if members is None else len(members),
        measure=resample,
        classes=outputs.report(),
        whole=measure(metrics, np.arange(len(outputs))),
        each={name: values.tolist() for name, values in rows.items() if metrics[name].total is mean},
    )


def mean_scores(
    per_example: Mapping[str, Sequence[float] | np.ndarray], groups: Sequence[int] | np.ndarray | None = None
) -> ExampleScores:
    """Create `ExampleScores` whose scores are means over examples.

    Args:
        per_example: For each score, a number per example.
        groups: The group index of each example; None if all examples are independent. Examples of a group may depend
            on each other, so groups are resampled as a whole. The scores are still means over examples.
    """
    columns = {name: np.asarray(values, np.float64) for name, values in per_example.items()}
    (count,) = {len(values) for values in columns.values()}
    members = np.arange(count) if groups is None else np.asarray(groups)
    sizes = np.bincount(members)
    sums = {name: np.bincount(members, values) for name, values in columns.items()}

    def measure(numbers: np.ndarray) -> dict[str, float]:
        # A mean over examples, not over groups, so that large groups weigh more, as in the score of the whole test set.
        examples = sizes[numbers].sum()
        return {name: float(values[numbers].sum() / examples) for name, values in sums.items()}

    return ExampleScores(len(sizes), measure)


@dataclass(frozen=True)
class BootstrapScores:
    """Scores of a system on a test set and on resamples of it, by name, as plain numbers that JSON can represent.

    Two systems with the same count, number of samples and seed are scored on the same resamples.
    """

    count: int  # examples or groups in the test set
    scores: dict[str, float]
    drawn: dict[str, list[float]]  # a score for each resample


def bootstrap_scores(system: ExampleScores, samples: int = 1000, seed: int = 1) -> BootstrapScores:
    """Score a system on its test set and on `samples` bootstrap resamples of it."""
    if system.count < 1 or samples < 1:
        raise InputError(f"{system.count} examples, {samples} samples: a bootstrap needs at least 1 of each")
    resamples = [system.measure(draw_examples(system.count, sample, seed)) for sample in range(samples)]
    scores = system.scores
    return BootstrapScores(system.count, scores, {name: [each[name] for each in resamples] for name in scores})


def compare_scores(
    baseline: ExampleScores, system: ExampleScores, samples: int = 1000, seed: int = 1
) -> list[Comparison]:
    """Compare two systems on the same resamples of a test set (Koehn 2004): one comparison per score.

    The p-value is two-sided: twice the share of resamples on which the system that is usually worse is at least as good
    as the other one. The test set counts as one more of these resamples, so the p-value is at least 2 / (samples + 1).
    """
    if not baseline.count == system.count > 0 or samples < 1:
        raise InputError(
            f"{baseline.count} examples of the baseline, {system.count} of the system, {samples} samples: a paired "
            "bootstrap needs the same examples for both, and at least 1 sample"
        )
    return compare_bootstraps(*(bootstrap_scores(scores, samples, seed) for scores in (baseline, system)))


def few_examples(count: int) -> str:
    """Return the warning that a test set has too few examples for a bootstrap."""
    return f"p-values from {counted(count, 'examples')} are unreliable; use at least {MIN_EXAMPLES}"


def compare_bootstraps(baseline: BootstrapScores, system: BootstrapScores) -> list[Comparison]:
    """Compare two systems on the same resamples, by each score that both have; see `compare_scores`."""
    comparisons = []
    for name, value in system.scores.items():
        if name not in baseline.scores:
            continue
        baseline_scores, system_scores = np.array(baseline.drawn[name]), np.array(system.drawn[name])
        gains = system_scores - baseline_scores
        # One example says nothing about chance: its p-value is 1.
        fewer = min(int((gains <= 0).sum()), int((gains >= 0).sum())) if system.count > 1 else len(gains)
        # The test set counts as one more resample, so that a finite number of resamples never gives p = 0.
        p_value = min(1.0, 2 * (1 + fewer) / (len(system_scores) + 1))
        baseline_value = baseline.scores[name]
        comparisons.append(
            Comparison(
                name=name,
                baseline=_resampled(baseline_value, baseline_scores),
                system=_resampled(value, system_scores),
                difference=_resampled(value - baseline_value, gains),
                p_value=p_value,
                lower_is_better=lower_is_better(name),
            )
        )
    return comparisons


def _resampled(value: float, resamples: np.ndarray) -> ScoreInterval:
    low, high = np.quantile(resamples, [0.025, 0.975])
    return ScoreInterval(value, float(resamples.mean()), float(high - low) / 2)


def bootstrap_interval(
    score: Callable[[np.ndarray], float], count: int, samples: int = 1000, level: float = 0.95, seed: int = 1
) -> Interval:
    """Return a score with its bootstrap percentile interval (Efron & Tibshirani 1993, chapter 13).

    Args:
        score: Computes the score of the examples with these indices, int64, shape (count,): for a mean
            `lambda numbers: scores[numbers].mean()`.
        count: The number of examples in the test set.
        samples: The number of resamples, each with `count` examples sampled with replacement.
        level: The share of resamples with a score in the interval.
        seed: The random seed.
    """
    if count < 1 or samples < 1 or not 0 < level < 1:
        raise InputError(
            f"{count} examples, {samples} samples, level {level}: a bootstrap needs at least 1 of each, and "
            "0 < level < 1"
        )
    values = [score(draw_examples(count, sample, seed)) for sample in range(samples)]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(score(np.arange(count))), float(low), float(high))


def draw_examples(count: int, sample: int, seed: int) -> np.ndarray:
    """Draw the examples of one resample with replacement: `count` indices, int64.

    They depend only on the arguments, so that two systems are scored on the same resamples.
    """
    raw = np.random.Philox(np.random.SeedSequence((seed, sample))).random_raw(count)
    # The remainder is biased towards small numbers, but only by a share of less than count / 2^64.
    return (raw % np.uint64(count)).astype(np.int64)


# Names in version 0.1
Outcomes, Draws = ExampleScores, BootstrapScores
mean_outcomes, draw_outcomes = mean_scores, bootstrap_scores
compare_outcomes, compare_draws = compare_scores, compare_bootstraps
