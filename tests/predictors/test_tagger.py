"""Tags and entities of texts, by models that need not have learned anything."""

import json
import random
from dataclasses import asdict, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from heedful.architectures import Model, TokenClassifier
from heedful.config.schema import DataConfig, ModelConfig, TokenizerConfig
from heedful.data.readers.tagged import may_follow, spans
from heedful.errors import InputError
from heedful.predictors import Predictor
from heedful.predictors.tagger import Entity, TaggedWords, Tagger
from heedful.predictors.text_predictor import Text
from heedful.text.training import train_tokenizer

WORDS = [f"w{letter}" for letter in "abcdefghijklmnopq"]
BIO = ("O", "B-a", "I-a", "B-b", "I-b")
BILOU = ("O", "B-a", "I-a", "L-a", "U-a")
MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, decoder_layers=1)
TOKENIZER = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False))


class ByItself(Model):
    """A model that takes a word for what its number says, whatever stands beside it."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.table = nn.Embedding(len(TOKENIZER), tags)
        self.backbone = nn.Module()
        self.backbone.causal = False

    def forward(self, ids, padding_mask, segments):
        return self.table(ids)


def tagger(family: str = "encoder", tags: tuple[str, ...] = BIO, longest: int = 13) -> Tagger:
    torch.manual_seed(3)
    model = TokenClassifier(replace(MODEL, family=family), len(TOKENIZER), len(tags))
    nn.init.normal_(model.output.weight)
    return Tagger(model, TOKENIZER, DataConfig(max_length=longest, labels=tags))


def sentences(count: int = 23) -> list[list[str]]:
    rng = random.Random(1)
    return [rng.choices(WORDS, k=rng.randrange(1, 31)) for _ in range(count)]


def test_it_is_a_predictor():
    assert isinstance(tagger(), Predictor)


def test_an_answer_is_a_line_with_a_kind_behind_each_entity():
    entities = (Entity("Angela Merkel", "PER", 0, 2, 0.5), Entity("Paris", "LOC", 3, 4, 0.25))
    answer = TaggedWords(("Angela", "Merkel", "visited", "Paris"), ("B-PER", "I-PER", "O", "B-LOC"), entities)
    assert str(answer) == "Angela Merkel/PER visited Paris/LOC"
    assert json.loads(json.dumps(asdict(answer)))["spans"][1] == {
        "text": "Paris",
        "kind": "LOC",
        "begin": 3,
        "end": 4,
        "probability": 0.25,
    }


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_what_stands_beside_a_sentence_does_not_matter(family):
    model = tagger(family)
    together = list(model.tag(sentences()))
    alone = [answer for sentence in sentences() for answer in model.tag([sentence])]
    assert [answer.tags for answer in together] == [answer.tags for answer in alone]
    for ours, theirs in zip(together, alone, strict=True):
        for one, other in zip(ours.spans, theirs.spans, strict=True):
            assert one.probability == pytest.approx(other.probability, rel=1e-4)


@pytest.mark.parametrize("tags", [BIO, BILOU], ids=["BIO", "BILOU"])
def test_no_tag_comes_where_the_scheme_does_not_allow_it(tags):
    answers = list(tagger(tags=tags).tag(sentences()))
    steps = [pair for answer in answers for pair in pairwise(["O", *answer.tags, "O"])]
    assert all(may_follow(before, tag, tags) for before, tag in steps)
    assert {tag for _, tag in steps} == set(tags)


@pytest.mark.parametrize("longest", [8, 11, 997])
def test_windows_change_nothing_where_context_does_not_matter(longest):
    model = Tagger(ByItself(len(BIO)), TOKENIZER, DataConfig(max_length=longest, labels=BIO))
    whole = Tagger(ByItself(len(BIO)), TOKENIZER, DataConfig(max_length=997, labels=BIO))
    assert list(model.tag(sentences())) == list(whole.tag(sentences()))


def test_an_entity_is_as_probable_as_its_tags_together():
    words = ByItself(len(BIO))
    model = Tagger(words, TOKENIZER, DataConfig(max_length=11, labels=BIO))
    seen = 0
    for sentence in sentences():
        (answer,) = model.tag([sentence])
        chances = words.table(torch.tensor([TOKENIZER.encode(word)[0] for word in sentence])).softmax(-1)
        assert [span[:3] for span in spans(answer.tags)] == [(e.begin, e.end, e.kind) for e in answer.spans]
        for entity in answer.spans:
            places = range(entity.begin, entity.end)
            expected = prod(chances[place, BIO.index(answer.tags[place])].item() for place in places)
            assert entity.probability == pytest.approx(expected, rel=1e-4)
            assert entity.text == " ".join(sentence[entity.begin : entity.end])
            seen += entity.end > entity.begin + 1
    assert seen > 3


def test_a_typed_text_is_cut_into_words():
    answers = list(tagger().predict([Text("wd (wf), wh!"), Text(""), Text("  ")]))
    assert [answer.words for answer in answers] == [("wd", "(", "wf", ")", ",", "wh", "!"), (), ()]
    assert str(answers[1]) == ""


def test_words_are_wanted_where_words_are_tagged():
    (answer,) = tagger().tag([("wd", "wf")])
    assert answer.words == ("wd", "wf")
    with pytest.raises(
        InputError, match=r"sentence 1: 'wd wf' .str. is not a list of words; `predict` also takes texts"
    ):
        list(tagger().tag(["wd wf"]))
    with pytest.raises(InputError, match="is a single sentence"):
        list(tagger().tag("wd wf"))


def test_lists_of_words_and_texts_are_inputs_of_a_tagger():
    given = [["wd.", "wf"], "wd. wf"]
    assert [answer.words for answer in tagger().predict(given)] == [("wd.", "wf"), ("wd", ".", "wf")]
    assert [answer.words for answer in tagger().predict_lines(given)] == [("wd.", "wf"), ("wd", ".", "wf")]
    given_words: list[Any] = [np.array(["wd.", "wf", "wh"]), ("wd.", "wf", "wh")]
    for words in given_words:
        assert tagger().predict([words])[0].words == ("wd.", "wf", "wh")
    assert tagger().predict([["wd.", "wf"]]) == list(tagger().tag([["wd.", "wf"]]))
    not_words: list[Any] = ["wd", [3]]
    with pytest.raises(InputError, match="text 2: word 1 is 3"):
        tagger().predict(not_words)


def test_a_pair_is_refused():
    with pytest.raises(InputError, match="'wd' and 'wf' are a pair; a tagger reads lines without tabs"):
        list(tagger().predict([Text("wd", "wf")]))


@pytest.mark.parametrize("text", ["O'Brien doesn't live in U.S. .", "B-1 (a) x-y"])
def test_a_text_for_a_model_of_pretokenized_text_is_cut_at_spaces_only(text):
    tokenizer = train_tokenizer([text], replace(TOKENIZER.config, pretokenized=True))
    model = Tagger(ByItself(len(BIO)), tokenizer, DataConfig(max_length=97, labels=BIO))
    assert list(model.predict(text).words) == text.split()
