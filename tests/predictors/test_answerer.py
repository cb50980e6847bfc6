"""Answers cut from texts, by models that need not have learned anything."""

import math
import random
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.architectures import Model, TokenClassifier
from heedful.config.schema import DataConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors import Predictor
from heedful.predictors.answerer import MAX_ANSWER_TOKENS, Answered, Answerer, SpanCandidate, answered, best_span
from heedful.predictors.text_predictor import Text
from heedful.text.sequences import Context, QuestionWindow, Window, encode_context
from heedful.text.training import train_tokenizer

WORDS = [f"w{letter}" for letter in "abcdefghijklmnopq"]
MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, decoder_layers=1)
TOKENIZER = train_tokenizer([" ".join(WORDS)], TokenizerConfig(kind="word", byte_fallback=False))


def answerer(family: str = "encoder", longest: int = 23) -> Answerer:
    torch.manual_seed(3)
    model = TokenClassifier(replace(MODEL, family=family), len(TOKENIZER), 2)
    nn.init.normal_(model.output.weight)
    return Answerer(model, TOKENIZER, DataConfig(max_length=longest))


class Marked(Model):
    """A model that takes wd for the first and wf for the last word of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(len(TOKENIZER), 2)
        nn.init.zeros_(self.table.weight)
        self.table.weight.data[TOKENIZER.encode("wd")[0], 0] = 7.0
        self.table.weight.data[TOKENIZER.encode("wf")[0], 1] = 7.0
        self.table.weight.data[2] = 3.0  # <bos>
        self.backbone = nn.Module()
        self.backbone.causal = False

    def forward(self, ids, padding_mask, segments):
        return self.table(ids)


def pairs(count: int = 23) -> list[Text]:
    rng = random.Random(1)
    sides = [[" ".join(rng.choices(WORDS, k=rng.randrange(most))) for most in (5, 61)] for _ in range(count)]
    return [Text(*texts) for texts in sides]


def test_it_is_a_predictor():
    assert isinstance(answerer(), Predictor)


@pytest.mark.parametrize("nowhere", [0, 61])
@pytest.mark.parametrize("seed", range(7))
def test_no_other_answer_in_a_window_is_likelier(nowhere, seed):
    torch.manual_seed(seed)
    logits = torch.randn(62, 2) * 3
    logits[[8, 50], 0] += 9.0  # the best beginnings are better seen from other windows
    reading = QuestionWindow([0] * 62, Window(100, 153, 113, 139), 7, nowhere)
    possible = [nowhere, *range(7, 60)]
    chances = logits.double()[possible].log_softmax(0)
    scores = {
        (first, last): chances[first - 99, 0] + chances[last - 99, 1]
        for first in range(113, 139)
        for last in range(first, min(first + MAX_ANSWER_TOKENS, 153))
    }
    best = max(scores, key=scores.__getitem__)
    found = best_span(reading, logits)
    assert found.tokens == best
    assert found.probability == pytest.approx(scores[best].exp().item(), rel=1e-4)
    assert found.margin == pytest.approx((scores[best] - chances[0].sum()).item(), rel=1e-4)


def test_no_answer_wins_where_it_is_likelier():
    logits = torch.zeros(11, 2)
    logits[0] = 5.0
    found = best_span(QuestionWindow([0] * 11, Window(0, 5, 0, 5), 3, 0), logits)
    probability = (math.exp(5) / (math.exp(5) + 5)) ** 2
    assert found == (0.0, pytest.approx(probability), None)


def test_the_answer_with_the_largest_margin_over_none_is_chosen():
    context = Context("one two three", [5, 6, 7], [(0, 3), (3, 7), (7, 13)])
    near, far, none = SpanCandidate(3.0, 0.4, (0, 0)), SpanCandidate(5.0, 0.3, (1, 2)), SpanCandidate(0.0, 0.9, None)
    assert answered(context, [near, none, far]) == Answered("two three", 4, 13, 0.3)
    assert answered(context, [none, SpanCandidate(0.0, 0.7, None)]) == Answered("", 0, 0, 0.7)


def test_an_answer_is_the_text_as_it_is():
    assert str(Answered("two\n three\u3000four", 0, 14, 0.5)) == "two\n three\u3000four"


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_what_stands_beside_a_question_does_not_matter(family):
    model = answerer(family)
    together = list(model.predict(pairs()))
    alone = [answer for pair in pairs() for answer in model.predict([pair])]
    for pair, ours, theirs in zip(pairs(), together, alone, strict=True):
        assert (ours.answer, ours.begin, ours.end) == (theirs.answer, theirs.begin, theirs.end)
        assert ours.probability == pytest.approx(theirs.probability, rel=1e-4)
        assert str(pair.second)[ours.begin : ours.end] == ours.answer == ours.answer.strip()
    assert len({answer.answer for answer in together}) > 7


@pytest.mark.parametrize("longest", [17, 23, 997])
@pytest.mark.parametrize("place", [0, 11, 67, 93])
def test_an_answer_is_found_in_whichever_window_it_is(longest, place):
    words = ["wb"] * 97
    words[place : place + 2] = ["wd", "wf"]
    text = "  ".join(words)
    model = Answerer(Marked(), TOKENIZER, DataConfig(max_length=longest))
    (answer,) = model.predict([Text("wh wl", text)])
    assert answer.answer == "wd  wf"
    assert text[: answer.begin].split() == words[:place]


def test_an_answer_of_too_many_words_is_none():
    model = Answerer(Marked(), TOKENIZER, DataConfig(max_length=97))
    texts = [
        Text("wh", " ".join(["wd", *["wb"] * inside, "wf"]))
        for inside in (MAX_ANSWER_TOKENS - 2, MAX_ANSWER_TOKENS - 1)
    ]
    answers = list(model.predict(texts))
    assert len(answers[0].answer.split()) == MAX_ANSWER_TOKENS
    assert len(answers[1].answer.split()) < MAX_ANSWER_TOKENS


def test_an_unknown_word_is_cut_from_the_text():
    context = encode_context(TOKENIZER, "wd Ünbekannt  wf")
    best = SpanCandidate(1.0, 0.5, (1, 1))
    assert answered(context, [best]).answer == "Ünbekannt"


def test_a_question_without_a_text_is_refused():
    with pytest.raises(InputError, match="'wd' is a question without a text"):
        list(answerer().predict([Text("wd", "wf"), Text("wd")]))
    with pytest.raises(InputError, match="a question of 11 tokens leaves"):
        list(answerer().predict([Text(" ".join(["wd"] * 11), "wf")]))
