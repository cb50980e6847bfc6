"""Sentences and cells of a report: the best, what may be chance, and units that people read."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from heedful.metrics import Comparison, ScoreInterval
from heedful.tools.compare.job import TestResult
from heedful.tools.compare.report import absent_classes, introduction, scaled, significance
from heedful.tools.compare.results import DONE, Pair, Report, SystemReport
from heedful.tools.compare.setup import Budget


def report(*values: float, p_value: float = 0.5, score: str = "accuracy") -> Report:
    """A report on systems a, b and so on with these values of a score, and the p-value of every pair."""
    scores = dict(zip("abc", (ScoreInterval(value, value, 0.01) for value in values), strict=False))
    systems = [SystemReport(name, "x", None, DONE, scores={score: found}) for name, found in scores.items()]
    names = list(scores)
    pairs = [
        Pair(was, now, [Comparison(score, scores[was], scores[now], ScoreInterval(0.1, 0.1, 0.01), p_value)])
        for i, was in enumerate(names)
        for now in names[i + 1 :]
    ]
    return Report(
        systems, "classification", "the test set", Budget(), score, f"valid_{score}", pairs, [], [], [], [], {}
    )


@pytest.mark.parametrize(
    ("values", "p_value", "said"),
    [
        ((0.5, 0.75), 0.01, "Best accuracy: b, 0.7500 ± 0.0100."),
        (
            (0.5, 0.75, 0.7),
            0.2,
            "Best accuracy: b, 0.7500 ± 0.0100. The difference from a, c is not statistically significant.",
        ),
        ((0.5, 0.5), 1.0, "Best accuracy: a and b, 0.5000 ± 0.0100."),
    ],
)
def test_the_best_is_told_and_what_may_be_chance(values, p_value, said):
    assert introduction(report(*values, p_value=p_value))[1:] == [said]


def test_of_error_rates_the_smallest_is_the_best():
    assert introduction(report(0.08, 0.62, p_value=0.01, score="wer"))[1:] == ["Best wer: a, 0.0800 ± 0.0100."]


def test_one_system_is_not_the_best_of_one():
    assert len(introduction(report(0.5))) == 1


def test_differences_are_signed_and_judged():
    rows = [
        significance(report(*values, p_value=p)).table.rows[0] for values, p in (((0.5, 0.25), 0.01), ((0.5, 0.5), 1))
    ]
    assert rows == [
        ["b – a", "accuracy", "-0.2500", "0.0100", "significant"],
        ["b – a", "accuracy", "+0.0000", "1.0000", "equal"],
    ]


def test_a_budget_is_told_in_words():
    every = report(0.5)
    assert "No budget was set" in introduction(every)[0]
    told = introduction(Report(**{**vars(every), "budget": Budget(400, 1.5, 2_600_000)}))[0]
    assert "Equal budget: 400 updates and 1.5 minutes of training and 2,600,000 parameters (within 5%)." in told


def test_large_numbers_are_short():
    assert [scaled(value, "FLOPs") for value in (12.0, 1234.0, 9.876e9, 999.7e6)] == [
        "12 FLOPs",
        "1.23 kFLOPs",
        "9.88 GFLOPs",
        "1 GFLOPs",
    ]


def test_few_examples_are_told_of():
    few, enough = (report(0.5, 0.75) for _ in range(2))
    for made, count in ((few, 99), (enough, 100)):
        for system in made.systems:
            object.__setattr__(system, "measured", SimpleNamespace(test=SimpleNamespace(count=count)))
    assert significance(few).text[1:] == ["P-values from 99 examples are unreliable; use at least 100."]
    assert significance(enough).text[1:] == []


def test_classes_without_an_example_in_the_test_set_are_named():
    every = report(0.5, 0.75)
    assert absent_classes(every) == []
    tests = [TestResult(count=7, scores={}, seconds=1.0, tokens=5, absent=names) for names in (["gnu"], ["gnu"])]
    systems = [
        replace(system, measured=SimpleNamespace(test=test)) for system, test in zip(every.systems, tests, strict=True)
    ]
    [line] = absent_classes(replace(every, systems=systems))
    assert line.startswith("The test set has no examples of gnu: its scores do not show how well they are recognised")
