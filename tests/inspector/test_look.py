"""A look shows one and the same pass: what is said, why, and the numbers behind it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.architectures.transformer.layers import Block, DecoderBlock
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.inspector.capture.forward_inputs import log_probs, model_of
from heedful.inspector.capture.recorder import Head
from heedful.inspector.capture.trace import trace
from heedful.inspector.look import Question, look, unknown, with_settings
from heedful.text.tokenizer import EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from interrupted import train
from subjects import GERMAN, TEXT, TOKENIZER, classifier, filler, generator, searcher, translator
from toy_vectors import toy_recipe


def test_the_numbers_are_those_of_the_best_answer():
    seen = look(translator(), Question(text=TEXT))
    best = seen.answers[0].options[0]
    line = seen.forward.lines["tgt"]
    assert line.said.labels[: len(best.pieces)] == list(best.pieces)
    logits = seen.trace["logits"].values.astype(float)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    said = log_probs[np.arange(len(best.pieces)), line.said.ids[: len(best.pieces)]]
    assert said == pytest.approx(best.log_probs, abs=1e-5)
    assert seen.lens is not None
    assert seen.lens.log_probs[-1].max(-1) == pytest.approx(log_probs.max(-1), abs=1e-5)


def test_a_search_as_wide_as_it_is_asked_for_gives_as_many_answers():
    for width in (1, 2, 5):
        seen = look(translator(), Question(text=TEXT, beam=width, alpha=1.0))
        assert seen.log is not None
        assert seen.log.config.beam == width
        assert seen.log.config.alpha == 1.0
        found = seen.log.replay()
        assert [option.score for option in seen.answers[0].options] == [h.score for h in found]
        assert len(found) <= width


@pytest.mark.parametrize("patience", [0, 0.2, 0.6, 2])
def test_the_answer_of_an_impatient_search_is_the_one_that_is_translated(patience):
    subject = heedful.load("en-de").with_options(beam=5, patience=patience, alpha=2)
    texts = [
        "Three children are playing with a ball behind the old house.",
        "A man in a red shirt is sitting on a bench near the river with his two children.",
    ]
    shown = [look(subject, Question(text=text)).answers[0].options[0].text for text in texts]
    assert shown == subject.translate(texts)


def test_a_target_that_is_given_is_looked_at_instead_of_searched_for():
    seen = look(translator(), Question(text=TEXT, target=GERMAN))
    own = trace(translator(), TEXT, GERMAN)
    assert np.array_equal(seen.trace["logits"].values, own["logits"].values)
    assert seen.log is None
    [option] = seen.answers[0].options
    assert (option.text, option.score) == (GERMAN, None)
    assert list(option.pieces) == seen.forward.lines["tgt"].written.labels
    assert option.log_probs == pytest.approx(log_probs(seen.forward), abs=1e-5)


def test_a_reference_and_a_beginning_reach_the_search():
    seen = look(translator(), Question(text=TEXT, reference=GERMAN, prefix="den"))
    assert seen.reference is not None
    assert seen.reference.tokens[-1] == EOS
    assert seen.answers[0].options[0].text.startswith("den")


def test_heads_are_off_during_search_and_pass_alike():
    question = Question(text=TEXT, off=(Head("enc.0.self", 1), Head("dec.2.cross", 0)))
    seen = look(translator(), question)
    assert not seen.trace["enc.0.self.z"].values[1].any()
    assert seen.trace["enc.0.self.z"].values[0].any()
    assert not seen.trace["dec.2.cross.z"].values[0].any()
    assert max(seen.trace.checks.values()) < 1e-5
    subject = translator()
    before = look(subject, Question(text=TEXT))
    look(subject, question)
    assert look(subject, Question(text=TEXT)).log == before.log


def test_a_language_model_goes_on_from_a_prompt():
    seen = look(generator(), Question(text=TEXT))
    option = seen.answers[0].options[0]
    line = seen.forward.lines["tgt"]
    end = len(line.said.labels) - (line.said.ids[-1] == EOS)
    assert tuple(line.said.labels[end - len(option.pieces) : end]) == option.pieces
    assert len(option.log_probs) == len(option.pieces)
    [option] = look(generator(), Question(text="two", target=" women")).answers[0].options
    assert option.text == " women"
    assert len(option.log_probs) == len(option.pieces) > 0


@pytest.mark.parametrize("context", [13, 29])
def test_a_language_model_goes_on_as_far_as_its_context_reaches(context):
    subject = generator(context)
    subject.config = replace(subject.config, max_tokens=101)
    seen = look(subject, Question(text="the old dog"))
    prompt = len(TOKENIZER.encode("the old dog"))
    [option] = seen.answers[0].options
    assert len(option.log_probs) == context + 1 - prompt or option.complete
    assert len(seen.trace.lines["tgt"].read.ids) <= context
    assert max(seen.trace.checks.values()) < 1e-5


@pytest.mark.parametrize(
    ("subject", "question", "words"),
    [
        (generator(context=48), Question(text="dog " * 12), "the text has 49 tokens, but the model takes at most 48"),
        (translator(), Question(text="dog " * 1000), "the model takes at most 999"),
        (
            translator(),
            Question(text="dog", reference="Hund " * 1005),
            "the reference has .* the model takes at most 1004",
        ),
        (translator(), Question(text="dog", target="Hund " * 1005), "the output has .* the model takes at most 1004"),
    ],
)
def test_what_is_too_long_is_refused_before_anything_is_computed(subject, question, words, monkeypatch):
    monkeypatch.setattr(Block, "forward", lambda *_: pytest.fail("the model was asked"))
    monkeypatch.setattr(DecoderBlock, "forward", lambda *_: pytest.fail("the model was asked"))
    with pytest.raises(InputError, match=words):
        look(subject, question)


def test_words_that_the_vocabulary_lacks_are_told():
    plain = train_tokenizer([TEXT], TokenizerConfig(vocab_size=61, byte_fallback=False, mask=True))
    words = train_tokenizer([TEXT], TokenizerConfig(kind="word", vocab_size=61, byte_fallback=False, mask=True))
    subject, reader = translator(), filler()
    subject.tokenizers, reader.tokenizer = TokenizerPair(plain, words), words
    question = Question(text="the dog 你好 sees 你好", reference="the old ÜÜ", prefix="dog")
    assert unknown(subject, question) == ["你好", "ÜÜ"]
    assert unknown(reader, Question(text="the cat sees cats <mask> cat", target="a dog")) == ["cat", "cats", "a"]
    assert look(reader, Question(text="the cat sees")).unknown == ["cat"]
    assert unknown(reader, Question(text="the [MASK] sees the <mask> dog [MASK] the")) == []
    assert look(translator(), Question(text="你好")).unknown == []


def test_gaps_are_filled_where_they_are():
    seen = look(filler(), Question(text="the <mask> dog [MASK] the station"))
    labels = seen.forward.lines["src"].read.labels
    assert [labels[answer.place or 0] for answer in seen.answers] == ["<mask>", "<mask>"]
    for answer in seen.answers:
        shares = [option.probability or 0.0 for option in answer.options]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1
    assert look(filler(), Question(text=TEXT)).answers == []


def test_a_classifier_says_its_classes_and_an_encoder_nothing():
    [answer] = look(classifier(), Question(text=TEXT)).answers
    assert {option.text for option in answer.options} == {"a", "b", "c"}
    assert sum(option.probability or 0.0 for option in answer.options) == pytest.approx(1)
    assert look(searcher(), Question(text=TEXT)).answers == []
    assert look(searcher(), Question(text=TEXT)).lens is None


@pytest.mark.parametrize("subject", [translator(), generator(), filler(), classifier()], ids=lambda x: type(x).__name__)
def test_a_model_that_computes_no_numbers_is_told_of(subject):
    with torch.no_grad():
        model_of(subject).get_parameter("output.weight").fill_(torch.nan)
    with pytest.raises(RunError, match="NaN"):
        look(subject, Question(text="the <mask> dog"))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(text=" "), "the text is empty"),
        (Question(text=TEXT, beam=21), "beam = 21"),
        (Question(text=TEXT, alpha=float("nan")), "alpha = nan"),
        (Question(text=TEXT, off=(Head("dec.0.cross", 0),), way="gone"), 'unknown way "gone" .*silent, even'),
    ],
)
def test_what_cannot_be_asked_is_refused(question, words):
    with pytest.raises(InputError, match=words):
        look(translator(), question)


def test_a_beam_that_is_wider_than_a_look_shows_is_made_narrower():
    wide = translator().with_options(beam=24, alpha=6.0)
    assert with_settings(wide, Question(text=TEXT)).config.beam == 20
    assert with_settings(wide, Question(text=TEXT)).config.alpha == 6.0


def toy_vectors(folder):
    train(toy_recipe(folder), folder / "run")
    return heedful.load(folder / "run")


def test_word_vectors_answer_with_the_neighbours_of_each_word_and_name_those_that_have_no_vector(tmp_path):
    vectors = toy_vectors(tmp_path)
    seen = look(vectors, Question(text="The king, zebras and the Queen"))
    assert seen.unknown == ["zebras", "and"]
    assert [answer.place for answer in seen.answers] == [0, 1, 2, 3]
    words = ["the", "king", "the", "queen"]
    assert [label.removeprefix("▁") for label in seen.trace.lines["src"].read.labels] == words
    np.testing.assert_array_equal(seen.trace["src.tok"].values, vectors.vectors(words))
    for word, answer in zip(words, seen.answers, strict=True):
        near = [(option.text, option.score) for option in answer.options]
        assert near == [tuple(one) for one in vectors.nearest(word)]


def test_a_text_of_words_without_vectors_is_refused(tmp_path):
    vectors = toy_vectors(tmp_path)
    with pytest.raises(InputError, match="no word of the text has a vector"):
        look(vectors, Question(text="zebras"))
    with pytest.raises(InputError, match="generate no text"):
        look(vectors, Question(text="king", target="queen"))
