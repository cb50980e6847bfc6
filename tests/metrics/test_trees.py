"""Scores of constituency trees: labelled constituents in common, and trees that are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.corpora.scenes import generate
from heedful.metrics.texts import Texts
from heedful.metrics.trees import BRACKET_F1, INVALID_TREES, bracket_counts, constituents

REFERENCE = "(S (NP the cat) (VP saw (NP a dog) (PP in (NP the house))) .)"
ATTACHED = "(S (NP the cat) (VP saw (NP (NP a dog) (PP in (NP the house)))) .)"  # the other attachment of the phrase


def score(metric, outputs, references):
    return metric.total(np.asarray(metric.compute(Texts(outputs, references))))


def test_constituents_have_labels_and_positions():
    tree = constituents("(S (NP the cat) (VP sleeps))")
    assert tree is not None
    spans, words = tree
    assert words == ["the", "cat", "sleeps"]
    assert dict(spans) == {("S", 0, 3): 1, ("NP", 0, 2): 1, ("VP", 2, 3): 1}


@pytest.mark.parametrize(
    "text", ["", "the cat", "(S (NP the cat)", "(S the cat))", "(S the) (S cat)", "the (S cat)", "(S the) cat", ")"]
)
def test_what_is_not_one_tree_is_invalid(text):
    assert constituents(text) is None
    assert score(INVALID_TREES, [text, REFERENCE], [REFERENCE, REFERENCE]) == 0.5
    assert bracket_counts(text, REFERENCE) == (0, 0, 6)


def test_a_tree_of_other_words_is_invalid():
    assert score(INVALID_TREES, [REFERENCE.replace("cat", "cow")], [REFERENCE]) == 1
    assert score(BRACKET_F1, [REFERENCE.replace("cat", "cow")], [REFERENCE]) == 0


def test_a_wrong_attachment_costs_one_constituent():
    # The other tree has all six constituents of the reference, and a noun phrase more: 2 * 6 / (7 + 6).
    assert bracket_counts(ATTACHED, REFERENCE) == (6, 7, 6)
    assert score(BRACKET_F1, [ATTACHED], [REFERENCE]) == pytest.approx(12 / 13)


def test_counts_are_summed_over_all_trees_before_the_division():
    small = "(S (NP x) y)"
    assert score(BRACKET_F1, [REFERENCE, "(S x y)"], [REFERENCE, small]) == pytest.approx(2 * 7 / (7 + 8))


def test_the_right_trees_have_all_constituents():
    trees = [pair.target.text for pair in generate("en-tree", 200, seed=3)]
    assert score(BRACKET_F1, trees, trees) == 1
    assert score(INVALID_TREES, trees, trees) == 0


@given(st.text(alphabet="()ab ", max_size=40))
def test_any_text_is_counted_without_an_error(text):
    correct, predicted, expected = bracket_counts(text, REFERENCE)
    assert 0 <= correct <= min(predicted, expected)
