"""Texts and pairs of texts, in whatever form they come."""

from typing import Any

import pytest

from heedful.errors import InputError
from heedful.predictors import Text
from subjects import classifier, searcher

FIRST, SECOND = "the old dog", "two women"


def test_a_pair_may_be_a_text_or_a_tuple():
    subject = classifier()
    alone, pair = subject.predict(FIRST), subject.predict(Text(FIRST, SECOND))
    assert alone != pair
    found = subject.predict([FIRST, (FIRST, SECOND), Text(FIRST, SECOND), Text(FIRST)])
    assert [answer.label for answer in found] == [alone.label, pair.label, pair.label, alone.label]
    assert found[1].probabilities == pytest.approx(pair.probabilities, abs=1e-6)
    assert found[3].probabilities == pytest.approx(alone.probabilities, abs=1e-6)
    assert len(subject.predict([FIRST, SECOND])) == 2
    assert len(subject.predict((FIRST, SECOND, FIRST))) == 3  # a sequence of texts


def test_what_is_no_pair_is_told():
    subject: Any = classifier()
    with pytest.raises(
        InputError, match=r"text 1: \('a', 'b', 'c'\) \(tuple\) is not a text; .* Text\(first, second\)"
    ):
        subject.predict([("a", "b", "c")])
    with pytest.raises(InputError, match=r"text 1: 3 .int. is not a text"):
        subject.predict([("a", 3)])


def test_answers_come_as_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("heedful.predictors.text_predictor.FIRST_WINDOW", 2)
    taken = []
    answers = classifier().predict_lines(taken.append(text) or text for text in [FIRST] * 5)
    next(answers)
    assert len(taken) == 2


def test_vectors_of_other_texts_are_refused():
    subject = searcher()
    with pytest.raises(InputError, match="2 texts but 1 vector;"):
        subject.search(FIRST, [FIRST, SECOND], vectors=subject.encode([FIRST]))
    assert subject.search(FIRST, iter([SECOND, FIRST]), k=1)[0].text == FIRST
    with pytest.raises(InputError, match="is a single text, but several"):
        subject.search(FIRST, SECOND)
