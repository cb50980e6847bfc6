"""Questions on texts: what is learned from, that it is learned, and what is refused."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
import torch
from rich.console import Console

from heedful.checkpoint import load_model
from heedful.config.schema import CorpusConfig
from heedful.data.readers.squad import read_squad
from heedful.errors import InputError
from heedful.predictors.answerer import Answered, Answerer
from heedful.predictors.text_predictor import Text
from heedful.tasks.span_qa import SpanQuestionAnswering
from heedful.text.tokenizer import BOS, EOS
from heedful.training import loop
from toy_spans import FAMILIES, FILLERS, recipe, write_questions

KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that trains a model of some family, once."""

    @cache
    def train(family: str) -> Path:
        folder = tmp_path_factory.mktemp(family)
        write_questions(folder / "train", 301, seed=1)
        write_questions(folder / "valid", 31, seed=2)
        settings = recipe("span_qa", folder, model={"family": family})
        loop.train(settings, folder / "run", Console(stderr=True, quiet=True))
        return folder / "run"

    return train


@pytest.fixture
def prepare(tmp_path):
    """A function that prepares a task on files in `tmp_path`, which hold toy questions unless they are there."""

    def prepared(**tables):
        for name, count in (("train", 23), ("valid", 7)):
            if not (tmp_path / name).exists():
                write_questions(tmp_path / name, count, seed=count)
        return SpanQuestionAnswering.prepare(recipe("span_qa", tmp_path, **tables), tmp_path / "prepared", print)

    return prepared


def write_one(path: Path, context: str, answer: str, question: str = "Which?", start: int | None = None) -> None:
    answers = [{"text": answer, "answer_start": context.index(answer) if start is None else start}]
    paragraph = {"context": context, "qas": [{"id": "q7", "question": question, "answers": answers}]}
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}), encoding="utf-8")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_marked_word_is_found(trained, family):
    scores = json.loads((trained(family) / "result.json").read_text())
    assert set(scores) == {"update", *SpanQuestionAnswering.spec.metrics}
    assert min(scores["f1"], scores["exact_match"]) > 0.9
    rng = random.Random(5)
    before, after = (" ".join(rng.choices(FILLERS, k=29)) for _ in range(2))  # of many windows
    texts = [f"{before} << jordan {after}", f"house << ada {after}", before, ""]
    answers = list(load_model(trained(family)).use_as(Answerer).predict(Text("Which?", text) for text in texts))
    assert [answer.answer for answer in answers] == ["jordan", "ada", "", ""]
    assert [text[answer.begin : answer.end] for text, answer in zip(texts, answers, strict=True)] == [
        *map(str, answers)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("longest", [37, 997])
def test_each_window_is_learned_from_with_the_answer_that_it_holds(prepare, kind, family, longest):
    tables = {"tokenizer": {"kind": kind, "vocab_size": 331}, "model": {"family": family}}
    task = prepare(**tables, data={"max_length": longest}, train={"batch_tokens": 997})
    questions = {q.id: q for q in read_squad(task.recipe.data.train[0], task.recipe.data)}
    answers = [[a.text for a in q.answers] for q in questions.values()]
    store, text = task.data.examples.train[0], task.tokenizers.source
    found: list[str] = []
    for row in range(len(store)):
        ids, (begin, end) = store.source(row).tolist(), store.target(row).tolist()
        question_end = ids.index(EOS)
        assert ids[0] == BOS
        assert text.decode(ids[1:question_end]) == "Which?"
        if begin > question_end and end < len(ids) - 1:
            found.append(text.decode(ids[begin : end + 1]).strip())
        else:
            nowhere = len(ids) - 1 if family == "decoder" else 0
            assert (begin, end) == (nowhere, nowhere)
    expected = [answer for accepted in answers for answer in accepted]
    assert [*dict.fromkeys(found)] == [*dict.fromkeys(expected)]
    assert len(found) >= len(expected)
    assert longest < 997 or (found == expected and len(store) == len(questions))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_cross_entropy_of_both_places(prepare, family, smoothing):
    task = prepare(model={"family": family}, train={"label_smoothing": smoothing})
    model = task.build(task.recipe, task.tokenizers).eval()
    total = nll = 0.0
    for ids in task.data.epoch(0):
        batch = task.data.batch(ids, 0, torch.device("cpu"))
        (loss,) = task.loss(model, batch)
        loss.sum.backward()
        assert (loss.count,) == batch.counts == (len(ids),)
        total, nll = total + loss.sum.item(), nll + loss.nll.item()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    expected = spread = 0.0
    store = task.data.examples.train[0]
    for row in range(len(store)):
        ids = torch.from_numpy(store.source(row))[None]
        begin = ids[0].tolist().index(EOS) + 1
        segments = (torch.arange(ids.size(1)) >= begin)[None].long()
        places = [*range(begin, ids.size(1) - 1)]
        places = [*places, ids.size(1) - 1] if family == "decoder" else [0, *places]
        surprise = -model(ids, torch.ones_like(ids, dtype=torch.bool), segments)[0, places].log_softmax(0)
        for side, target in enumerate(store.target(row).tolist()):
            expected += surprise[places.index(target), side].item()
            spread += surprise[:, side].mean().item()
    assert nll == pytest.approx(expected, rel=1e-4)
    assert total == pytest.approx((1 - smoothing) * expected + smoothing * spread, rel=1e-4)


@pytest.mark.parametrize(("language", "exact"), [("zh", 1.0), ("zh-Hans", 1.0), ("cmn", 1.0), ("en", 0.0), ("de", 0.0)])
def test_answers_are_compared_by_the_convention_of_their_language(prepare, tmp_path, monkeypatch, language, exact):
    write_one(tmp_path / "valid", "我吃苹果。", "苹果")
    task = prepare(data={"target_language": language})
    monkeypatch.setattr(Answerer, "predict_lines", lambda _, texts: (Answered("苹果。", 2, 5, 1.0) for text in texts))
    scores = task.evaluate(task.build(task.recipe, task.tokenizers).eval()).scores
    assert (scores["exact_match"], scores["f1"]) == (exact, exact)


def test_a_tokenizer_is_trained_on_each_text_once(prepare, tmp_path):
    task = prepare()
    texts = list(SpanQuestionAnswering.dataset.reader.texts(CorpusConfig(source="train"), task.recipe))
    assert texts.count("Which?") == 23
    assert len(set(texts)) == len(texts) - 22


def test_space_around_an_answer_is_not_learned(prepare, tmp_path):
    write_one(tmp_path / "train", "the house under  ada", " under  ", start=9)
    task = prepare(tokenizer={"kind": "character"}, data={"max_length": 97})
    ids, (begin, end) = (list(getattr(task.data.examples.train[0], side)(0)) for side in ("source", "target"))
    assert task.tokenizers.source.decode(ids[begin : end + 1]) == "under"


def test_a_long_question_is_refused_with_its_name(prepare, tmp_path):
    write_one(tmp_path / "train", "the house", "house", question="house " * 11)
    with pytest.raises(InputError, match=r"train, question 'q7': a question of \d+ tokens leaves .*max_length = 19"):
        prepare(tokenizer={"vocab_size": 289})


def test_without_validation_data_there_are_no_scores(prepare):
    task = prepare(data={"valid": None})
    assert task.evaluate(task.build(task.recipe, task.tokenizers)) is None
