"""A shift is what the plain model's probabilities say, changes its sign with its sides, and is nothing for nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.inspector.capture.recorder import Head
from heedful.inspector.capture.trace import trace
from heedful.inspector.experiments.minimal_pairs import Contrast, Shift, differing, form_log_probs, shifts, summaries
from heedful.text.tokenizer import BOS, EOS, MASK, UNK
from subjects import GERMAN, TEXT, TOKENIZER, classifier, filler, generator, translator

OTHER, GERMAN_OTHER = "the old woman sees the station .", "der alte Hund sieht den alten Bahnhof ."
GAP, GAP_OTHER = "the old [MASK] sees .", "two [MASK] read ."
LINES = {
    "translator": (translator, Contrast(1, (TEXT, OTHER), (GERMAN, GERMAN_OTHER), "pair")),
    "generator": (generator, Contrast(1, (TEXT, OTHER), (" two", " the old"), "pair")),
    "filler": (filler, Contrast(1, (GAP, GAP_OTHER), ("the", "s"), "pair")),
}


@pytest.fixture(params=LINES)
def asked(request):
    make, contrast = LINES[request.param]
    subject = make()
    subject.model.eval()
    return subject, contrast


def likelihood(logits, targets):
    """The sum of log P, a token at a time, from the definition of the softmax."""
    return sum(float(row[i] - row.double().exp().sum().log()) for row, i in zip(logits, targets, strict=True))


@torch.no_grad()
def test_a_translator_is_scored_as_a_loop_over_its_plain_pass_scores_it():
    subject = translator()
    subject.model.eval()
    source = torch.tensor([[*subject.tokenizers.source.encode(TEXT), EOS]])
    expected = []
    for form in (GERMAN, GERMAN_OTHER):
        written, total = [*subject.tokenizers.target.encode(form), EOS], 0.0
        for place in range(len(written)):
            read = torch.tensor([[BOS, *written[:place]]])
            logits = subject.model(source, torch.ones_like(source).bool(), read, torch.ones_like(read).bool())
            total += likelihood(logits[0, -1:], written[place : place + 1])
        expected.append(total)
    assert form_log_probs(subject, TEXT, (GERMAN, GERMAN_OTHER)) == pytest.approx(expected, abs=1e-4)


@torch.no_grad()
def test_a_generator_is_scored_on_what_goes_on_and_not_on_the_prompt():
    subject = generator()
    subject.model.eval()
    read, written = TOKENIZER.encode(TEXT), TOKENIZER.encode_continuation(" two women")
    row = torch.tensor([read + written])
    logits = subject.model(row, torch.ones_like(row).bool())[0]
    expected = likelihood(logits[len(read) - 1 : -1], written)
    assert form_log_probs(subject, TEXT, (" two women", " the"))[0] == pytest.approx(expected, abs=1e-4)


def test_a_filler_prefers_what_it_takes_to_be_more_probable():
    subject = filler()
    found = {candidate.token: candidate.probability for candidate in subject.fill(GAP, len(TOKENIZER))[0]}
    [the], [s] = map(TOKENIZER.encode_continuation, (" the", " s"))
    assert np.exp(form_log_probs(subject, GAP, ("the", "s"))) == pytest.approx([found[the], found[s]], rel=1e-4)


def test_the_shift_is_the_difference_of_two_preferences(asked):
    [found] = shifts(asked[0], [asked[1]])
    (aa, ba), (ab, bb) = found.scores
    assert found.preferences == (aa - ba, ab - bb)
    assert found.shift == (aa - ba) - (ab - bb)
    assert found.shift != 0


def test_the_shift_changes_its_sign_with_the_sources_and_with_the_forms(asked):
    subject, contrast = asked
    turned = replace(contrast, sources=contrast.sources[::-1]), replace(contrast, forms=contrast.forms[::-1])
    plain, *others = shifts(subject, [contrast, *turned])
    assert [other.shift for other in others] == [-plain.shift, -plain.shift]


def test_the_same_source_twice_shifts_nothing(asked):
    subject, contrast = asked
    [found] = shifts(subject, [replace(contrast, sources=(contrast.sources[0],) * 2)])
    assert found.shift == 0
    assert found.attention is None


def test_attention_is_that_of_the_place_where_the_forms_part():
    subject, contrast = translator(), LINES["translator"][1]
    [of_one] = shifts(subject, [contrast], Head("dec.1.cross", 1))
    [of_all] = shifts(subject, [contrast])
    assert of_one.attention is not None
    assert of_all.attention is not None
    written = [[*subject.tokenizers.target.encode(form), EOS] for form in contrast.forms]
    place = next(i for i, (a, b) in enumerate(zip(*written, strict=False)) if a != b)
    rows = [[*subject.tokenizers.source.encode(source), EOS] for source in contrast.sources]
    for side, span in enumerate(differing(*rows)):
        for form in contrast.forms:  # which of them is forced is not seen before they part
            seen = trace(subject, contrast.sources[side], form)
            weights = [seen[f"dec.{layer}.cross.attn"].values[:, place, span].sum(-1) for layer in range(3)]
            assert of_one.attention[side] == pytest.approx(weights[1][1], abs=1e-6)
            assert of_all.attention[side] == pytest.approx(np.mean(weights), abs=1e-6)


def test_only_translators_have_such_attention():
    [found] = shifts(generator(), [LINES["generator"][1]])
    assert found.attention is None


def test_what_two_rows_do_not_share_lies_between_what_they_do():
    assert differing([1, 2, 3, 4], [1, 7, 8, 4]) == (slice(1, 3), slice(1, 3))
    assert differing([1, 2, 4], [1, 2, 2, 4]) == (slice(2, 2), slice(2, 3))
    assert differing([5], [6, 7]) == (slice(0, 1), slice(0, 2))


@pytest.mark.parametrize(
    ("make", "sources", "forms", "words"),
    [
        (translator, (TEXT, TEXT * 1000), (GERMAN, "den"), "line 7: the text has .* tokens"),
        (generator, (TEXT, OTHER), (" two", "\ud800"), "line 7: .*surrogate"),
        (filler, (TEXT, GAP), ("the", "s"), "line 7: .* has no gap"),
        (filler, (GAP + GAP_OTHER, GAP), ("the", "s"), "line 7: .* has 2 gaps"),
        (filler, (GAP, GAP_OTHER), ("the", "dog"), "line 7: 'dog' is 4 tokens .*, but a gap takes one"),
        (classifier, (TEXT, OTHER), ("a", "b"), "line 7: .* not for a Classifier"),
    ],
)
def test_what_a_model_cannot_take_is_refused_with_its_line(make, sources, forms, words):
    with pytest.raises(InputError, match=words):
        list(shifts(make(), [Contrast(7, sources, forms, "pair")]))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (Head("enc.0.self", 0), "does not attend to the source"),
        (Head("dec.9.cross", 0), "the tensor dec.9.cross.attn does not exist"),
        (Head("dec.0.cross", 2), "head 2: dec.0.cross has 2"),
    ],
)
def test_a_head_that_has_no_such_attention_is_refused(head, words):
    with pytest.raises(InputError, match=words):
        list(shifts(translator(), [LINES["translator"][1]], head))


def test_unknown_words_are_refused_because_their_probability_says_nothing(monkeypatch):
    subject = filler()
    monkeypatch.setattr(subject, "encode", lambda _: [BOS, UNK, MASK, EOS])
    with pytest.raises(InputError, match=r"line 1: .* has a word outside the model's vocabulary, <unk>"):
        list(shifts(subject, [LINES["filler"][1]]))


def test_pairs_and_controls_are_summed_up_apart():
    def shift(value, kind):
        preferences = (value, -value)
        return Shift(Contrast(1, ("a", "b"), ("c", "d"), kind), ((0.0, 0.0), (0.0, 0.0)), preferences, 2 * value)

    found = summaries([shift(1.0, "pair"), shift(-3.0, "pair"), shift(0.5, "control")])
    assert found["pair"].count == 2
    assert found["pair"].shift.value == -2
    assert found["pair"].size.value == 4
    assert found["pair"].sided == 1
    assert list(summaries([shift(1.0, "control")])) == ["control"]


@pytest.mark.parametrize(("count", "has_interval"), [(1, False), (3, False), (5, False), (6, True), (30, True)])
def test_only_enough_pairs_have_an_interval(count, has_interval):
    values = [float(number) for number in range(count)]
    one = Contrast(1, ("a", "b"), ("c", "d"), "pair")
    found = summaries([Shift(one, ((0.0, 0.0), (0.0, 0.0)), (value, 0.0), value) for value in values])["pair"]
    assert found.shift.value == found.size.value == sum(values) / count
    for value, low, high in (found.shift, found.size):
        assert (low is not None, high is not None) == (has_interval, has_interval)
        assert low is None or high is None or 0 < low < value < high < count - 1
