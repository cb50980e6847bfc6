"""Switching heads off is measured on the very tokens of a look, and leaves the model as it was."""

import pytest
import torch

from heedful.inspector.capture.forward_inputs import model_of
from heedful.inspector.capture.recorder import Head, heads, switched_off
from heedful.inspector.capture.trace import trace
from heedful.inspector.experiments.ablation import effect
from heedful.inspector.look import Question, look
from subjects import GERMAN, TEXT, classifier, filler, generator, searcher, translator

OFF = (Head("dec.0.self", 1), Head("dec.1.self", 0))


@pytest.mark.parametrize("make", [translator, generator])
def test_the_tokens_are_those_that_were_written_and_their_probabilities_those_of_the_model(make):
    subject = make()
    seen = look(subject, Question(text=TEXT))
    found = effect(subject, seen, OFF)
    written = seen.forward.lines["tgt"].written
    assert found.pieces == written.labels
    logits = torch.from_numpy(seen.trace.tensors["logits"]).log_softmax(-1)
    expected = logits[torch.arange(len(written.ids)), torch.tensor(written.ids)]
    assert found.whole == pytest.approx(expected.tolist(), abs=1e-5)
    assert found.without != found.whole
    assert found.answers[0].options
    assert effect(subject, seen, ()).without == found.whole


def test_a_translation_that_was_given_is_scored_without_the_heads():
    subject = translator()
    found = effect(subject, look(subject, Question(text=TEXT, target=GERMAN)), OFF)
    without = trace(subject, TEXT, GERMAN, edits=switched_off(OFF))
    written = without.lines["tgt"].written
    assert written is not None
    logits = torch.from_numpy(without.tensors["logits"]).log_softmax(-1)
    expected = logits[torch.arange(len(written.ids)), torch.tensor(written.ids)]
    assert found.without == pytest.approx(expected.tolist(), abs=1e-5)
    assert found.answers == []


def test_heads_that_a_look_was_made_without_are_off_on_both_sides():
    subject = translator()
    seen = look(subject, Question(text=TEXT, target=GERMAN, off=OFF[:1]))
    both = effect(subject, look(subject, Question(text=TEXT, target=GERMAN)), OFF)
    rest = effect(subject, seen, OFF[1:])
    assert rest.without == both.without
    assert rest.whole == effect(subject, look(subject, Question(text=TEXT, target=GERMAN)), OFF[:1]).without


def test_what_fills_a_gap_has_a_probability_with_and_without_the_heads():
    subject = filler()
    off = heads(subject.model)
    text = "the [MASK] dog sees the [MASK] ."
    found = effect(subject, look(subject, Question(text=text)), off)
    assert len(found.choices) == 2
    for choices, answer in zip(found.choices, found.answers, strict=True):
        assert 10 <= len(choices) <= 20
        assert [choice.whole for choice in choices] == sorted((choice.whole for choice in choices), reverse=True)
        likeliest = max(choice.without for choice in choices)
        assert likeliest == pytest.approx(answer.options[0].probability, rel=1e-4)
    assert found.pieces == []


def test_a_class_has_a_probability_with_and_without_the_heads():
    subject = classifier()
    seen = look(subject, Question(text=TEXT))
    found = effect(subject, seen, heads(model_of(subject)))
    [choices] = found.choices
    assert {choice.text: choice.whole for choice in choices} == {
        option.text: option.probability for option in seen.answers[0].options
    }
    assert sum(choice.without for choice in choices) == pytest.approx(1)
    assert any(choice.without != choice.whole for choice in choices)


def test_a_model_that_says_nothing_has_nothing_to_change():
    subject = searcher()
    found = effect(subject, look(subject, Question(text=TEXT)), heads(model_of(subject))[:1])
    assert (found.answers, found.pieces, found.choices) == ([], [], [])
