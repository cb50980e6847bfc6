"""Tags of words: what is learned from, that it is learned, and what is refused."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
import torch
from rich.console import Console

from heedful.checkpoint import load_model
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.tagged import read_tagged
from heedful.errors import InputError
from heedful.predictors.tagger import Tagger
from heedful.predictors.text_predictor import Text
from heedful.tasks.readers.texts import TaggedReader
from heedful.tasks.tagging import IGNORE, Tagging
from heedful.text.training import train_tokenizer
from heedful.training import loop
from toy_spans import FAMILIES, recipe, tagged_sentence, write_tagged


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that trains a model of some family, once."""

    @cache
    def train(family: str) -> Path:
        folder = tmp_path_factory.mktemp(family)
        write_tagged(folder / "train", 301, seed=1)
        write_tagged(folder / "valid", 31, seed=2)
        settings = recipe("tagging", folder, model={"family": family}, train={"max_updates": 307})
        loop.train(settings, folder / "run", Console(stderr=True, quiet=True))
        return folder / "run"

    return train


@pytest.fixture
def prepare(tmp_path):
    """A function that prepares a task on files in `tmp_path`, which hold toy sentences unless they are there."""

    def prepared(report=None, **tables):
        for name, count in (("train", 23), ("valid", 7)):
            if not (tmp_path / name).exists():
                write_tagged(tmp_path / name, count, seed=count)
        return Tagging.prepare(recipe("tagging", tmp_path, **tables), tmp_path / "prepared", report or print)

    return prepared


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_names_are_learned(trained, family):
    scores = json.loads((trained(family) / "result.json").read_text())
    assert set(Tagging.spec.metrics) <= set(scores)
    assert min(scores["f1"], scores["precision"], scores["recall"], scores["accuracy"]) > 0.9
    tagger = load_model(trained(family)).use_as(Tagger)
    (answer,) = tagger.predict([Text("yesterday mr florence jordan saw in ada")])
    assert str(answer) == "yesterday mr florence jordan/person saw in ada/place"
    assert min(span.probability for span in answer.spans) > 0.5


def test_a_text_is_cut_as_the_training_file_is_after_training_too(tmp_path):
    sentence = ["O'Brien", "doesn't", "live", "in", "U.S.", "."]
    lines = "".join(f"{word} {'B-a' if word[0].isupper() else 'O'}\n" for word in sentence)
    (tmp_path / "train").write_text(f"{lines}\n" * 2)
    (tmp_path / "valid").write_text(lines)
    settings = recipe("tagging", tmp_path, train={"max_updates": 2, "validate_every": 2, "save_every": 1})
    loop.train(settings, tmp_path / "run", Console(stderr=True, quiet=True))
    for place in ("run/model", "run/checkpoints/step-00000001"):
        tagger = load_model(tmp_path / place).use_as(Tagger)
        assert list(tagger.predict(" ".join(sentence)).words) == sentence
        assert list(tagger.predict("(He doesn't!)").words) == ["(", "He", "doesn't", "!", ")"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_of_many_windows_is_tagged_to_its_end(trained, family):
    tagger = load_model(trained(family)).use_as(Tagger)
    rng = random.Random(3)
    words, tags = zip(*(pair for _ in range(31) for pair in tagged_sentence(rng, 5)), strict=True)
    (answer,) = tagger.tag([words])
    right = [ours == theirs for ours, theirs in zip(answer.tags, tags, strict=True)]
    assert sum(right) / len(right) > 0.95
    assert len(words) > 11 * tagger.reader.longest


def test_tags_come_from_the_training_data_kind_by_kind(prepare):
    labels = ("O", "B-person", "I-person", "B-place", "I-place")
    assert prepare().recipe.data.labels == labels
    assert prepare(data={"labels": labels[::-1]}).recipe.data.labels == labels[::-1]


@pytest.mark.parametrize("kind", ["word", "character", "byte", "bpe", "unigram", "wordpiece"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("longest", [8, 11, 997])
def test_every_word_is_learned_from_once_at_a_piece_of_its_own(prepare, kind, family, longest):
    tables = {"tokenizer": {"kind": kind, "vocab_size": 331}, "model": {"family": family}}
    task = prepare(**tables, data={"max_length": longest}, train={"batch_tokens": 997})
    corpus, labels = task.recipe.data.train[0], task.recipe.data.labels
    sentences = list(read_tagged(corpus, task.recipe.data))
    store = task.data.examples.train[0]
    pairs = [
        (i, labels[target - 1])
        for row in range(len(store))
        for i, target in zip(store.source(row), store.target(row), strict=True)
        if target != IGNORE
    ]
    assert [tag for _, tag in pairs] == [tag for sentence in sentences for tag in sentence.tags]
    place = -1 if family == "decoder" else 0
    text = task.tokenizers.source
    words = [word for sentence in sentences for word in sentence.words]
    ends = [text.decode([int(i)]).strip(" ")[place] for i, _ in pairs]
    assert ends == [word[place] for word in words]
    assert sum(task.data.batch(ids, 0, torch.device("cpu")).counts[0] for ids in task.data.epoch(0)) == len(words)
    assert (len(store) > len(sentences)) == (longest < 997)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_cross_entropy_of_the_words(prepare, smoothing):
    task = prepare(train={"label_smoothing": smoothing})
    model = task.build(task.recipe, task.tokenizers).eval()
    total = nll = count = 0.0
    for ids in task.data.epoch(0):
        batch = task.data.batch(ids, 0, torch.device("cpu"))
        (loss,) = task.loss(model, batch)
        assert (loss.count,) == batch.counts
        total, nll, count = total + loss.sum.item(), nll + loss.nll.item(), count + loss.count
    expected = expected_nll = 0.0
    store = task.data.examples.train[0]
    for row in range(len(store)):
        ids = torch.from_numpy(store.source(row))[None]
        surprise = -model(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids)).log_softmax(-1)[0]
        for token, target in enumerate(store.target(row)):
            if target != IGNORE:
                expected_nll += surprise[token, target - 1].item()
                expected += smoothing * surprise[token].mean().item()
    assert nll == pytest.approx(expected_nll, rel=1e-4)
    assert total == pytest.approx((1 - smoothing) * expected_nll + expected, rel=1e-4)


def test_the_old_scheme_of_conll_is_learned_as_bio(prepare, tmp_path):
    text = "ada\tI-person\nbyron\tI-person\njordan\tB-person\n\nhouse\tO\nada\tI-person\n"
    (tmp_path / "train").write_text(text)
    (tmp_path / "valid").write_text(text)
    task = prepare(data={"labels": ["O", "B-person", "I-person"]})
    targets = [task.data.examples.train[0].target(row).tolist() for row in (0, 1)]
    assert [[target for target in row if target] for row in targets] == [[2, 3, 2], [1, 2]]


def test_a_tag_that_is_not_in_the_training_data_is_refused(prepare, tmp_path):
    (tmp_path / "valid").write_text("house\tO\n\nsaw\tO\nada\tB-dog\n")
    with pytest.raises(
        InputError, match=r"valid, sentence at line 3: the label 'B-dog' is not in data.labels \(O, B-person, .*labels"
    ):
        prepare()


@pytest.mark.parametrize("change", [{"data": {"max_length": 13}}, {"model": {"family": "decoder"}}], ids=str)
def test_what_rows_depend_on_prepares_them_again(prepare, change):
    told: list[str] = []
    prepare(told.append)
    prepare(told.append)
    assert sum("prepared earlier" in line for line in told) == 1
    prepare(told.append, **change)
    assert sum("prepared earlier" in line for line in told) == 1


def test_skipped_sentences_are_counted_and_not_scored(prepare, tmp_path):
    (tmp_path / "valid").write_bytes(b"ada\tB-person\n\n\xff\tO\nsaw\tO\n\nhouse\tO\n")
    task = prepare(data={"bad_utf8": "skip"})
    assert task.data.examples.report.counts == {"bad UTF-8": 1}
    scores = task.evaluate(task.build(task.recipe, task.tokenizers).eval()).scores
    assert scores is not None
    assert scores["accuracy"] in (0.0, 0.5, 1.0)


def test_without_validation_data_there_are_no_scores(prepare):
    task = prepare(data={"valid": None})
    assert task.evaluate(task.build(task.recipe, task.tokenizers)) is None


def test_a_sentence_of_one_endless_word_is_learned_from_once(tmp_path):
    (tmp_path / "train").write_text("a" * 97 + "\tB-x\n\nb\tO\n")
    byte_recipe = recipe("tagging", tmp_path, data={"valid": None}, tokenizer={"kind": "byte"})
    settings = TaggedReader.resolve(byte_recipe)
    tokenizer = train_tokenizer([], settings.tokenizer)
    rows = list(Tagging.dataset.rows(settings.data.train[0], settings, tokenizer, DropReport()))
    assert [[target for target in targets if target] for _, targets in rows] == [[2], [1]]
