"""JSON: the standard library reads the new texts, and all else is the same byte for byte."""

import json

import pytest
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, encoded, encodings, replaced, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.json_strings import read
from heedful.errors import InputError

plain = texts.map(lambda text: text.replace("\ud83d", ""))  # half a character has no UTF-8
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=7,
)


@st.composite
def contents(draw: st.DrawFn) -> str:
    indent = draw(st.sampled_from([None, 0, 2, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    content = json.dumps(draw(values), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        content = content.replace("/", "\\/")
    if draw(st.booleans()):
        content = content.replace("<", "\\u003c")
    return draw(st.sampled_from(["", "\n", "\r\n "])) + content + draw(st.sampled_from(["", "\n", "\r\n"]))


@given(contents(), encodings)
def test_a_file_whose_texts_stay_the_same_stays_the_same(content, encoding):
    document = read(encoded(content, encoding), "a.json")
    assert document.with_segments(document.segments) == encoded(content, encoding)


@given(contents(), encodings, st.data())
def test_new_texts_are_read_and_all_else_stays(content, encoding, data):
    document = read(encoded(content, encoding), "a.json")
    segments = changed(document, data.draw)
    output = document.with_segments(segments)
    new = iter([segment.text for segment in segments])
    expected = replaced(json.loads(content), new)
    assert repr(json.loads(output.decode(encoding).removeprefix("\ufeff"))) == repr(expected)  # NaN has a repr
    assert next(new, None) is None


@given(contents(), st.data())
def test_broken_files_are_refused_in_one_line(content, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, encoded(content, "utf-8")), "a.json")


@given(st.binary(max_size=31))
def test_arbitrary_bytes_are_refused_in_one_line(data):
    check_that_only_input_errors_are_raised(read, data, "a.json")


def written(content: str, text: str) -> str:
    document = read(content.encode(), "a.json")
    return document.with_segments([segment._replace(text=text) for segment in document.segments]).decode()


def test_keys_stay_and_whitespace_at_the_edges_is_not_part_of_a_text():
    document = read(b'{"title" : " Hello\\n", "n": "", "x": [1, "two"]}', "a.json")
    assert [segment.text for segment in document.segments] == ["Hello", "two"]
    assert document.with_segments([segment._replace(text="é") for segment in document.segments]).decode() == (
        '{"title" : " é\\n", "n": "", "x": [1, "é"]}'
    )


def test_characters_are_escaped_as_they_are_in_the_file():
    assert written('["a"]', "ü</😀") == '["ü</😀"]'
    assert written('["a", "\\u00e9"]', "ü😀") == '["\\u00fc\\ud83d\\ude00", "\\u00fc\\ud83d\\ude00"]'
    assert written('["ä", "\\u00e9"]', "ü") == '["ü", "ü"]'
    assert written('["\\u003ca\\u003e"]', "<ü/>") == '["\\u003cü/\\u003e"]'
    assert written('["A\\/b"]', "</") == '["<\\/"]'
    assert written('["a\\\\/b"]', "</") == '["</"]'  # a backslash before a slash


def test_half_a_character_is_a_replacement_character_and_stays_in_the_file():
    document = read(b'["a\\ud83d", "\\ud83d\\ude00"]', "a.json")
    assert [segment.text for segment in document.segments] == ["a\ufffd", "😀"]
    assert document.with_segments(document.segments) == b'["a\\ud83d", "\\ud83d\\ude00"]'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"a": "b",\n}', "a.json:3: is not valid JSON"),
        (b"", "a.json:1: is not valid JSON: Expecting value"),
        (b'["a\nb"]', "a.json:1: is not valid JSON: Invalid control character"),
        (b'["\xff"]', "a.json:1: is not UTF-8 text"),
    ],
)
def test_the_message_names_the_line(content, message):
    with pytest.raises(InputError, match=message):
        read(content, "a.json")


def test_deep_nesting_is_refused():
    with pytest.raises(InputError, match="nested too deeply"):
        read(b"[" * 200_000, "a.json")


def test_a_number_may_have_many_digits():
    content = b"[1" + b"0" * 5000 + b', "a"]'
    document = read(content, "a.json")
    assert document.with_segments(document.segments) == content
