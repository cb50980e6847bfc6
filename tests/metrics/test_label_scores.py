"""Scores of classes equal their definitions, counted example by example."""

import math

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.metrics.classes import F1Counts, accuracy, class_tallies, confusion_matrix, macro_f1, matthews, micro_f1

CASES = [(2, 11), (3, 17), (5, 101), (7, 13)]


def drawn(classes, count):
    rng = np.random.default_rng(classes)
    expected = rng.integers(0, classes, count)
    predicted = np.where(rng.random(count) < 0.6, expected, rng.integers(0, classes, count))
    return predicted.tolist(), expected.tolist()


def test_rows_are_what_is_right_and_columns_what_was_predicted():
    assert confusion_matrix([0, 2, 2], [0, 1, 1], 3).tolist() == [[1, 0, 0], [0, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize(("classes", "count"), CASES)
def test_figures_of_a_class_are_counted_against_all_others(classes, count):
    predicted, expected = drawn(classes, count)
    pairs = list(zip(predicted, expected, strict=True))
    matrix = confusion_matrix(predicted, expected, classes)
    f1 = []
    for name, tally in enumerate(class_tallies(matrix)):
        right = sum(p == name == e for p, e in pairs)
        false_alarms = sum(p == name != e for p, e in pairs)
        missed = sum(e == name != p for p, e in pairs)
        assert tally.precision == pytest.approx(right / (right + false_alarms) if right else 0.0)
        assert tally.recall == pytest.approx(right / (right + missed) if right else 0.0)
        f1.append(right / (right + (false_alarms + missed) / 2) if right else 0.0)
        assert tally.f1 == pytest.approx(f1[-1])
    assert macro_f1(matrix) == pytest.approx(sum(f1) / len({*predicted, *expected}))
    assert accuracy(matrix) == pytest.approx(sum(p == e for p, e in pairs) / count)
    assert micro_f1(matrix) == pytest.approx(accuracy(matrix))


def test_a_class_that_is_nowhere_does_not_count_in_macro_f1():
    assert macro_f1(np.diag([3, 5, 0])) == 1.0
    assert macro_f1(np.array([[3, 0, 0], [0, 5, 1], [0, 0, 0]])) == pytest.approx((1 + 10 / 11) / 3)


@pytest.mark.parametrize(("classes", "count"), CASES)
def test_micro_f1_may_leave_a_class_out(classes, count):
    predicted, expected = drawn(classes, count)
    right = sum(p == e != 0 for p, e in zip(predicted, expected, strict=True))
    both = sum(p != 0 for p in predicted) + sum(e != 0 for e in expected)
    assert micro_f1(confusion_matrix(predicted, expected, classes), range(1, classes)) == pytest.approx(
        2 * right / both
    )


@pytest.mark.parametrize(("classes", "count"), CASES)
def test_matthews_is_the_correlation_of_class_indicators(classes, count):
    predicted, expected = (np.eye(classes)[side] for side in drawn(classes, count))
    x, y = predicted - predicted.mean(0), expected - expected.mean(0)
    correlation = (x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum())
    assert matthews(confusion_matrix(*drawn(classes, count), classes)) == pytest.approx(correlation)


def test_matthews_of_two_classes_is_the_formula_of_the_paper():
    tp, fp, fn, tn = 90, 4, 5, 1  # as in Chicco & Jurman 2020: F1 looks good at 0.952, Matthews' figure does not
    paper = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    matrix = np.array([[tn, fp], [fn, tp]])
    assert matthews(matrix) == pytest.approx(paper)
    assert matthews(matrix) == pytest.approx(0.135, abs=5e-4)
    assert class_tallies(matrix)[1].f1 == pytest.approx(0.952, abs=5e-4)


def test_matthews_knows_perfect_inverse_and_constant():
    assert matthews(np.diag([3, 5, 7])) == pytest.approx(1.0)
    assert matthews(np.array([[0, 5], [7, 0]])) == pytest.approx(-1.0)
    assert matthews(np.array([[5, 0], [7, 0]])) == 0.0
    assert matthews(np.array([[10**6, 10**6], [1, 10**12]])) > 0  # the products do not fit into 64 bits


def test_what_has_no_denominator_is_zero():
    assert [F1Counts(0, 0, 0).precision, F1Counts(0, 0, 3).recall, F1Counts(0, 0, 0).f1] == [0.0] * 3


@pytest.mark.parametrize(
    ("predicted", "expected", "problem"),
    [
        ([], [], "0 predictions for 0 labels"),
        ([1], [1, 1], "1 predictions for 2 labels"),
        ([3], [1], "the ids of 3 classes are 0 to 2"),
        ([1], [-1], "the ids of 3 classes are 0 to 2"),
    ],
)
def test_labels_that_do_not_fit_are_refused(predicted, expected, problem):
    with pytest.raises(InputError, match=problem):
        confusion_matrix(predicted, expected, 3)
