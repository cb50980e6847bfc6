"""Dialogues: every reply with what was said before it."""

import gzip
import json

import pytest

from heedful.config.schema import CorpusConfig, DataConfig, FilterConfig
from heedful.data.readers.corpus import context, read_replies
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import read_texts
from heedful.data.readers.text_columns import TextRequest, choose_columns
from heedful.errors import InputError


def read(folder, rows, name="d.jsonl", report=None, corpus=None, **data):
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    found = read_replies(CorpusConfig(source=name, **corpus or {}), DataConfig(root=str(folder), **data), report)
    return [tuple(pair) for pair in found]


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz"])
def test_each_turn_but_the_first_replies_to_all_before_it(tmp_path, name):
    rows = [{"source": ["Hi.", "Hello!", "How are you?"]}, {"source": ["Yes?", "No."]}]
    assert read(tmp_path, rows, name) == [
        (1, "Hi.", "Hello!"),
        (1, "Hi.\tHello!", "How are you?"),
        (2, "Yes?", "No."),
    ]


def test_a_reply_may_stand_beside_its_context(tmp_path):
    rows = [{"source": "Hi.", "target": "Hello!"}, {"source": ["a", "b"], "target": "c"}]
    assert read(tmp_path, rows) == [(1, "Hi.", "Hello!"), (2, "a\tb", "c")]


def test_keys_may_have_other_names(tmp_path):
    fields = {"source_field": "turns", "target_field": "answer"}
    rows = [{"turns": ["a", "b"]}, {"turns": ["a"], "answer": "c", "target": 7}]
    assert read(tmp_path, rows, corpus=fields) == [(1, "a", "b"), (2, "a", "c")]


CHAT = [("system", ""), ("user", "Hi."), ("assistant", "Hello!"), ("user", "Bye."), ("assistant", "Good bye.")]


@pytest.mark.parametrize(("who", "what"), [("role", "content"), ("from", "value")])
def test_of_a_chat_the_messages_of_the_assistant_are_the_replies(tmp_path, who, what):
    rows = [{"messages": [{who: role, what: text} for role, text in CHAT]}]
    pairs = [(1, "Hi.", "Hello!"), (1, "Hi.\tHello!\tBye.", "Good bye.")]
    assert read(tmp_path, rows, corpus={"source_field": "messages"}) == pairs
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}, {"role": "assistant", "content": "Hello!"}]
    assert read(tmp_path, [{"source": parts}]) == [(1, "Hi.", "Hello!")]
    people = [{"role": "Ann", "content": "a"}, {"role": "Bob", "content": "b"}, {"role": "Ann", "content": "c"}]
    assert read(tmp_path, [{"source": people}]) == [(1, "a", "b"), (1, "a\tb", "c")]


def test_a_message_without_text_is_refused_with_its_line(tmp_path):
    rows = [{"source": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": None}]}]
    with pytest.raises(InputError, match=r"d\.jsonl, line 1: neither a dialogue nor a reply"):
        read(tmp_path, rows)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (["Hi.", "How are\tyou?"], "Hi.\tHow are you?"),
        ([{"role": "user", "content": "How are you?"}], "How are you?"),
        ([{"from": "human", "value": "How are you?"}, {"from": "gpt", "value": "Good."}], "How are you?"),
    ],
    ids=["texts", "a chat that waits for a reply", "a chat that ends in a reply"],
)
@pytest.mark.parametrize("name", ["source", "messages"])
def test_turns_of_a_row_are_what_a_model_of_dialogues_replies_to(tmp_path, name, said, text):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": number, name: said}) + "\n" for number in range(3)))
    wanted = TextRequest(("source",), turns=True)
    if name == "source" or len(said) > 1:
        fields = choose_columns(path, wanted).fields
        assert fields == (name,)
        assert [row.texts for row in read_texts(path, fields, turns=True)] == [(text,)] * 3
    with pytest.raises(InputError, match=r"is a JSON list, not text"):
        list(read_texts(path, (name,)))


def test_space_inside_a_turn_ends_no_turn(tmp_path):
    assert read(tmp_path, [{"source": [" a\tb\n", "c  d\r\ne"]}]) == [(1, "a b", "c d\r\ne")]


def test_the_oldest_turns_give_way(tmp_path):
    rows = [{"source": ["aaaa", "bbb", "cc", "d"]}]
    found = read(tmp_path, rows, filters=FilterConfig(max_characters=6))
    assert [pair[1] for pair in found] == ["aaaa", "bbb", "bbb\tcc"]


@pytest.mark.parametrize(("longest", "kept"), [(1, 1), (6, 1), (7, 2), (10, 2), (11, 3)])
def test_a_context_has_as_many_turns_as_fit_and_at_least_one(longest, kept):
    turns = ["aaa", "bbb", "ccc"]
    assert context(turns, longest) == "\t".join(turns[-kept:])


def test_pairs_of_other_files_are_replies(tmp_path):
    assert read(tmp_path, ["Hi.\tHello!", "a\tb"], "d.tsv") == [(1, "Hi.", "Hello!"), (2, "a", "b")]


def test_a_part_is_one_of_dialogues(tmp_path):
    rows = [{"source": [f"a{i}", "b", "c"]} for i in range(4)]
    halves = [read(tmp_path, rows, corpus={"part": part}) for part in ((0, 0.5), (0.5, 1))]
    assert [pair[0] for half in halves for pair in half] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert len(halves[0]) == 4


def test_bad_utf8_takes_the_whole_line_and_is_counted(tmp_path):
    rows = ['{"source": ["a", "\\ud800"]}', {"source": ["a", "b"]}]
    report = DropReport()
    assert read(tmp_path, rows, report=report, bad_utf8="skip") == [(2, "a", "b")]
    assert report.counts == {"bad UTF-8": 1}
    assert read(tmp_path, rows, bad_utf8="replace")[0][2] == "\ufffd" * 3
    with pytest.raises(InputError, match=r"d.jsonl, line 1: contains a lone surrogate"):
        read(tmp_path, rows)


@pytest.mark.parametrize(
    "row",
    [
        {"source": ["alone"]},
        {"source": "alone"},
        {"source": []},
        {"source": [], "target": "a"},
        {"source": ["a", 7]},
        {"source": "a", "target": None},
        {"turns": ["a", "b"]},
    ],
    ids=str,
)
def test_a_line_that_is_neither_is_refused(tmp_path, row):
    with pytest.raises(InputError, match=r"d\.jsonl, line 2: neither a dialogue nor a reply"):
        read(tmp_path, [{"source": ["a", "b"]}, row])


@pytest.mark.parametrize(("line", "problem"), [("[]", "a JSON list"), ("{", "not JSON")])
def test_a_line_that_is_no_object_is_refused(tmp_path, line, problem):
    with pytest.raises(InputError, match=f"d.jsonl, line 1: {problem}"):
        read(tmp_path, [line])
