"""Groups of sentences: all sentences once, equal values together, scores of the part."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.corpora.scenes import split
from heedful.corpora.scenes.corpus import corpus_files
from heedful.tools.compare.measure import reordering_distances
from heedful.tools.compare.statistics import (
    MAX_GROUPS,
    MIN_SENTENCES,
    ScoredTexts,
    Translations,
    divide_sentences,
    group_scores,
)
from reversal import recipe


@given(st.lists(st.integers(1, 30), max_size=200))
def test_every_sentence_is_in_one_group_and_groups_are_in_order(values):
    groups = divide_sentences(values)
    assert len(groups) <= MAX_GROUPS
    if groups:
        assert sorted(index for group in groups for index in group) == list(range(len(values)))
    assert all(len(group) >= MIN_SENTENCES for group in groups)
    bounds = [(min(values[i] for i in group), max(values[i] for i in group)) for group in groups]
    assert all(before[1] < after[0] for before, after in pairwise(bounds))


def test_few_sentences_are_not_divide_sentences():
    assert divide_sentences(list(range(2 * MIN_SENTENCES - 1))) == []
    assert len(divide_sentences(list(range(2 * MIN_SENTENCES)))) == 2


def test_a_group_has_the_score_of_its_sentences():
    values = [i % 7 for i in range(101)]
    figures = np.random.default_rng(1).random(101)
    groups = group_scores(values, {"a": ScoredTexts({"exact_match": figures.tolist()})}, "exact_match")
    assert sum(group.count for group in groups) == 101
    for group in groups:
        inside = [figure for value, figure in zip(values, figures, strict=True) if group.low <= value <= group.high]
        assert group.scores["a"].value == pytest.approx(np.mean(inside))


def test_translations_are_scored_by_group():
    right = tuple(" ".join(f"w{(i + j) % 7}" for j in range(5)) for i in range(61))
    outputs = tuple(text if i < 31 else "something else" for i, text in enumerate(right))
    groups = group_scores([i // 31 for i in range(61)], {"a": Translations(outputs, right, "en")}, "BLEU")
    assert [(group.low, group.high, group.count) for group in groups] == [(0, 0, 31), (1, 1, 30)]
    assert [round(group.scores["a"].value, 9) for group in groups] == [100, 0]


def test_words_move_as_far_as_the_gold_alignment_says(tmp_path):
    parts = split("en-de", 3, 3, 23, 1)
    for name, text in corpus_files("en-de", parts).items():
        (tmp_path / name).write_text(text)
    made = recipe(tmp_path, data={"test": {"source": "test.en", "target": "test.de"}})
    assert reordering_distances(made) == [max(abs(i - j) for i, j in pair.alignment) for pair in parts["test"]]
    (tmp_path / "test.align").unlink()
    assert reordering_distances(made) is None
