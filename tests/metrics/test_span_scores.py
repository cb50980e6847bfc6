"""Spans count where both ends and the kind are right."""

import random
from itertools import pairwise

import pytest

from heedful.errors import InputError
from heedful.metrics.classes import F1Counts
from heedful.metrics.spans import span_tallies, span_tally


def test_a_worked_example():
    expected = [["B-person", "I-person", "O", "B-place"], ["O", "B-place", "I-place"]]
    predicted = [["B-person", "I-person", "O", "B-person"], ["O", "B-place", "O"]]
    assert span_tally(predicted, expected) == F1Counts(correct=1, predicted=3, expected=3)
    assert span_tallies(predicted, expected) == {"person": F1Counts(1, 2, 1), "place": F1Counts(0, 1, 2)}


def test_schemes_can_be_compared():
    assert span_tally([["I-a", "I-a", "O"]], [["B-a", "E-a", "O"]]).f1 == 1.0


def boundaries(tags):
    """Spans as (begin, end, kind), from conlleval's two questions: does one end before here, does one begin here."""
    found, begin = [], None
    padded = ["O", *tags, "O"]
    for place, (before, here) in enumerate(pairwise(padded)):
        old, new = before[2:], here[2:]
        ends = before != "O" and (before[0] in "ES" or here[0] in "OBS" or old != new)
        begins = here != "O" and (here[0] in "BS" or before[0] in "OES" or old != new)
        if ends:
            found.append((begin, place, old))
        if begins:
            begin = place
    return set(found)


def test_figures_equal_a_count_of_boundaries_on_any_tags():
    draw = random.Random(3)
    tags = ["O", *(f"{place}-{kind}" for place in "BIES" for kind in "ab")]
    for _ in range(53):
        expected = [draw.choices(tags, k=draw.randint(1, 13)) for _ in range(5)]
        predicted = [[tag if draw.random() < 0.7 else draw.choice(tags) for tag in row] for row in expected]
        sides = [[boundaries(row) for row in rows] for rows in (predicted, expected)]
        correct = sum(len(ours & theirs) for ours, theirs in zip(*sides, strict=True))
        counts = [sum(map(len, side)) for side in sides]
        assert span_tally(predicted, expected) == (correct, *counts)
        kinds = span_tallies(predicted, expected).values()
        assert F1Counts(*map(sum, zip(*kinds, strict=True))) == (correct, *counts)


def test_without_spans_every_figure_is_zero():
    assert span_tally([["O"]], [["O"]]).f1 == 0.0
    assert span_tallies([["O"]], [["O"]]) == {}


@pytest.mark.parametrize(
    ("predicted", "problem"),
    [([["O"]], "1 sentences were tagged, but 2 were expected"), ([["O"], ["O", "O"]], "sentence 2")],
)
def test_tags_that_do_not_fit_are_refused(predicted, problem):
    with pytest.raises(InputError, match=problem):
        span_tally(predicted, [["O"], ["O"]])
