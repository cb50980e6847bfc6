"""A head that is switched off is off everywhere, costs what the outputs say, and is on again afterwards."""

import pytest

from heedful.errors import InputError
from heedful.inspector.capture.recorder import Head, heads, recording, switched_off
from heedful.inspector.experiments.ablation import cost, sweep, translations_without
from heedful.metrics import Scoring, score
from subjects import TEXT, translator

SOURCES = [TEXT, "two women read a book .", "the old book"]


@pytest.fixture
def subject():
    return translator()


def test_translations_without_heads_are_those_of_a_model_without_them(subject):
    whole = subject.translate(SOURCES)
    off = heads(subject.model)[:5]
    without = translations_without(subject, off, SOURCES)
    with recording(subject.model, edits=switched_off(off)):
        assert [subject.translate([source])[0] for source in SOURCES] == without
    assert subject.translate(SOURCES) == whole
    assert translations_without(subject, [], SOURCES) == whole


def test_the_cost_is_the_difference_of_two_scores(subject):
    off = heads(subject.model)[3:7]
    whole, without = subject.translate(SOURCES), translations_without(subject, off, SOURCES)
    found = cost(subject, off, SOURCES, whole)
    assert found.baseline.value == pytest.approx(100)
    [expected] = score(without, [whole], Scoring(metrics=("bleu",)))
    assert found.system.value == pytest.approx(expected.value)


def test_a_sweep_tries_every_head_once(subject):
    references = subject.translate(SOURCES)
    found = dict(sweep(subject, SOURCES, references))
    assert list(found) == heads(subject.model)
    head = heads(subject.model)[4]
    assert found[head].system.value == pytest.approx(cost(subject, [head], SOURCES, references).system.value)


def test_what_is_known_of_the_whole_model_is_not_asked_again(subject, monkeypatch):
    references = subject.translate(SOURCES)
    plain, asked = subject.translate, []
    monkeypatch.setattr(subject, "translate", lambda texts: asked.append(texts) or plain(texts))
    head = heads(subject.model)[4]
    found = cost(subject, [head], SOURCES, references, whole=references)
    assert len(asked) == 1
    assert found.baseline.value == pytest.approx(100)
    assert len(list(sweep(subject, SOURCES, references, whole=references))) == len(asked) - 1


def test_bleu_cuts_words_as_the_language_wants(subject):
    references = ["两只狗在雪里跑。"] * len(SOURCES)
    found = cost(subject, [heads(subject.model)[0]], SOURCES, references, whole=references, language="zh")
    assert "tok:zh" in found.signature


def test_a_head_of_another_model_is_refused(subject):
    with pytest.raises(InputError, match=r"the tensor dec.9.cross.z"):
        translations_without(subject, [Head("dec.9.cross", 0)], SOURCES)
    with pytest.raises(InputError, match="head 2: the block has 2"):
        translations_without(subject, [Head("dec.0.cross", 2)], SOURCES)
