"""Questions whose answers stand in a text."""

import gzip
import json

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.squad import GoldAnswer, SpanQuestion, read_squad
from heedful.errors import InputError

CONTEXT = "黑豹队 lost 24, then 24 more."


def entry(name, *answers, **more):
    """A question of the file whose answers are (text, start)."""
    return {"id": name, "question": f"{name}?", "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


def article(*entries, context=CONTEXT):
    return {"title": "t", "paragraphs": [{"context": context, "qas": list(entries)}]}


@pytest.fixture
def questions(tmp_path):
    """A function that writes articles as one file and reads its questions."""

    def read(*articles, content=None, name="a.json", part=(0.0, 1.0), policy="error"):
        raw = content or json.dumps({"version": "1.1", "data": articles}, ensure_ascii=False).encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        data = DataConfig(root=str(tmp_path), bad_utf8=policy)
        return list(read_squad(CorpusConfig(source=name, part=part), data))

    return read


def test_questions_come_with_their_text_and_all_answers(questions):
    articles = article(entry("a", ("24", 9), ("24 more", 18)), entry("b", ("黑豹队", 0)))
    expected = [
        SpanQuestion("a", "a?", CONTEXT, (GoldAnswer("24", 9), GoldAnswer("24 more", 18))),
        SpanQuestion("b", "b?", CONTEXT, (GoldAnswer("黑豹队", 0),)),
    ]
    assert questions(articles) == expected
    assert questions(articles, name="a.json.gz") == expected
    marked = b"\xef\xbb\xbf" + json.dumps({"data": [articles]}).encode()
    assert questions(content=marked) == expected


def test_an_impossible_question_has_no_answers_whatever_is_plausible(questions):
    plausible = [{"text": "24", "answer_start": 9}]
    unanswered = entry("a", is_impossible=True, plausible_answers=plausible)
    answered = entry("b", ("24", 9), is_impossible=False)
    assert [len(question.answers) for question in questions(article(unanswered, answered))] == [0, 1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (("24", 10), r"is not at character 10 of its text; set answer_start to 9, the nearest"),
        (("24", 17), r"set answer_start to 18, the nearest"),
        (("24", 18 - len(CONTEXT)), r"character -8 of its text; set answer_start to 9, the nearest"),
        (("25", 9), r"'25' is not at character 9 of its text; the text does not contain it"),
        (("", 9), r"the text does not contain it"),
    ],
)
def test_an_answer_that_stands_elsewhere_is_refused_with_its_question(questions, answer, problem):
    with pytest.raises(InputError, match=r"a\.json, article 2, question 'x7': the answer .*" + problem):
        questions(article(entry("a", ("24", 9))), article(entry("x7", answer)))


def test_a_question_has_answers_or_says_that_there_are_none(questions):
    with pytest.raises(InputError, match="question 'a': 0 answers, but \"is_impossible\" is false"):
        questions(article(entry("a")))
    with pytest.raises(InputError, match=r"question 'a': 1 answer, but \"is_impossible\" is true"):
        questions(article(entry("a", ("24", 9), is_impossible=True)))


def test_an_id_stands_for_one_question(questions):
    with pytest.raises(InputError, match=r"a\.json: two questions have the id 'a'"):
        questions(article(entry("a", ("24", 9))), article(entry("a", ("24", 18))))


def test_parts_are_cut_between_articles(questions):
    articles = [article(entry(f"{i}a", ("24", 9)), entry(f"{i}b", ("24", 18)), context=CONTEXT) for i in range(5)]
    first, second = (questions(*articles, part=part) for part in ((0.0, 0.5), (0.5, 1.0)))
    assert [question.id for question in first] == ["0a", "0b", "1a", "1b"]
    assert first + second == questions(*articles)
    with pytest.raises(InputError, match="article 4, question '3a'"):
        questions(*articles[:3], article(entry("3a", ("25", 9))), part=(0.5, 1.0))
    with pytest.raises(InputError, match="contains none of its 5 articles"):
        questions(*articles, part=(0.0, 0.1))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", r"a\.json: not JSON"),
        (b"[]", r"a\.json: 'data' is missing or is not a list"),
        (b'{"data": [{}]}', r"a\.json, article 1: 'paragraphs' is missing"),
        (b'{"data": [{"paragraphs": [{"context": 1}]}]}', r"'context' is missing or is not a str"),
        (b'{"data": [{"paragraphs": [{"context": "c", "qas": [7]}]}]}', r"'id' is missing"),
        (
            b'{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "a"}]}]}]}',
            r"question 'a': 'answers' is missing",
        ),
        (b'{"data":\n"\xff"}', r"a\.json, line 2, byte 2"),
    ],
)
def test_what_is_not_of_the_format_is_refused_with_its_place(questions, content, problem):
    with pytest.raises(InputError, match=problem):
        questions(content=content)


def test_half_a_character_is_refused_with_its_question_or_replaced(questions):
    halved = article(entry("a", ("24", 9)), entry("b", ("24", 9)), context=CONTEXT + " \ud83d")
    content = json.dumps({"data": [halved]}).encode()
    with pytest.raises(
        InputError, match=r"a\.json, article 1: 'context' contains a lone surrogate \(U\+D83D\).* data\.bad_utf8"
    ):
        questions(content=content)
    assert [one.context for one in questions(content=content, policy="replace")] == [CONTEXT + " \ufffd"] * 2


def test_a_file_may_be_one_line_of_any_length(questions, monkeypatch):
    monkeypatch.setattr("heedful.data.readers.files.MAX_LINE_BYTES", 101)
    assert len(questions(*[article(entry(f"{i}", ("24", 9))) for i in range(7)])) == 7
