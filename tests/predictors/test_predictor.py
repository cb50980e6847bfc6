"""One text or several, where a model computes, and how it is shown: alike for all predictors."""

from typing import Any

import pytest
import torch

import subjects
from heedful.errors import InputError
from heedful.predictors import AnyPredictor
from heedful.predictors.generator import GenerationRequest
from subjects import TEXT

OTHER = "two women read a book ."
GAP = "the <mask> dog"
USES = {
    "translator": (subjects.translator, lambda subject, given: subject.translate(given), TEXT),
    "generator": (subjects.generator, lambda subject, given: subject.generate(given), TEXT),
    "filler": (subjects.filler, lambda subject, given: subject.fill(given), GAP),
    "classifier": (subjects.classifier, lambda subject, given: subject.predict(given), TEXT),
    "searcher": (subjects.searcher, lambda subject, given: subject.encode(given).tolist(), TEXT),
    "search": (subjects.searcher, lambda subject, given: subject.search(given, [TEXT, OTHER]), TEXT),
}


@pytest.mark.parametrize("name", USES)
def test_a_string_has_one_answer_and_an_iterable_a_list_of_them(name):
    make, ask, text = USES[name]
    subject = make()
    alone = ask(subject, text)
    for given in ([text], (text,), iter([text]), {text: 0}.keys()):
        assert ask(subject, given) == [alone]
    assert len(ask(subject, [text, text, text])) == 3
    assert ask(subject, []) == []


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "None is neither a text nor a list; give a string, or a list for several inputs"),
        (7, r"7 \(int\) is neither a text"),
        (b"ab", r"b'ab' \(bytes\) is neither a text"),
        ({"a": "b"}, r"\(dict\) is neither a text"),
        ([GAP, None], "text 2: None is not a text; give a string"),
        ([GAP, GAP, float("nan")], r"text 3: nan \(float\) is not a text"),
    ],
)
def test_what_is_no_text_is_told(name, given, words):
    make, ask, _ = USES[name]
    with pytest.raises(InputError, match=words):
        ask(make(), given)


def test_one_text_where_many_are_read_one_by_one_is_told():
    for read in (
        subjects.translator().translate_lines,
        subjects.classifier().predict_lines,
        subjects.searcher().encode_lines,
        subjects.filler().fill_lines,
        subjects.generator().generate_lines,
    ):
        with pytest.raises(InputError, match=r"'two' .str. is a single text, but several are expected here"):
            list(read("two"))


def test_options_of_a_call_hold_for_that_call():
    translator, generator = subjects.translator(), subjects.generator()
    misspelt: Any = {"bean": 1}
    wrong: Any = {"n_best": "many"}
    greedy = translator.with_options(beam=1)
    assert translator.translate(TEXT, beam=1) == greedy.translate(TEXT)
    assert len(next(translator.translate_lines([TEXT], n_best=3)).alternatives) == 3
    assert (greedy.config.beam, translator.config.beam) == (1, 3)
    assert greedy.model is translator.model
    assert len(generator.generate(TEXT, max_tokens=3, stop=[]).tokens) <= 3
    assert generator.generate(TEXT, seed=5) == generator.generate(
        GenerationRequest(TEXT, generator.with_options(seed=5).config)
    )
    assert "".join(generator.stream(TEXT, seed=5)) == str(generator.generate(TEXT, seed=5))
    assert generator.generate(GenerationRequest(TEXT, generator.config), max_tokens=2) == generator.generate(
        TEXT, max_tokens=2
    )
    with pytest.raises(InputError, match=r"n_best = 3: translate gives one translation of a text; .* translate_lines"):
        translator.translate(TEXT, n_best=3)
    assert translator.translate(TEXT, n_best=1) == translator.with_options(n_best=1).translate(TEXT)
    with pytest.raises(InputError, match="n_best"):
        translator.translate(TEXT, **wrong)
    with pytest.raises(InputError, match='unknown option bean; did you mean "beam"'):
        translator.translate_lines([TEXT], **misspelt)
    with pytest.raises(InputError, match="max_tokens must be at least 1"):
        generator.stream(TEXT, max_tokens=0)


def test_an_output_that_leaves_no_room_for_the_source_is_refused():
    translator = subjects.translator()
    with pytest.raises(InputError, match="max_extra must be at least 0"):
        translator.translate(TEXT, max_extra=-1)


@pytest.mark.parametrize("make", [use[0] for use in list(USES.values())[:-1]], ids=list(USES)[:-1])
def test_a_predictor_says_where_and_in_what_it_computes(make):
    subject: AnyPredictor = make()
    count = sum(weight.numel() for weight in subject.model.parameters())
    name = type(subject).__name__
    assert subject.device == torch.device("cpu")
    assert repr(subject) == f"{name}(parameters={count:_}, precision='float32', device='cpu')"
    assert subject.to("cpu") is subject
    assert subject.to(torch.device("cpu")) is subject
    with pytest.raises(InputError, match="nowhere"):
        subject.to("nowhere")
    assert subject.to("meta").device.type == "meta"


def test_gaps_and_texts_have_at_least_one_candidate():
    with pytest.raises(InputError, match="count = 0"):
        subjects.filler().fill(GAP, count=0)
    with pytest.raises(InputError, match="k = 0"):
        subjects.searcher().search(TEXT, [TEXT], k=0)
