"""Documents: encodings, and texts with tags."""

import pytest
from hard_texts import encoded, encodings, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.document import (
    Place,
    Segment,
    Tag,
    TextDocument,
    decoded,
    edges,
    is_identifier,
    whole,
    with_tags,
)
from heedful.errors import InputError


@given(st.text(), encodings)
def test_a_file_is_written_in_its_encoding(content, encoding):
    data = encoded(content, encoding)
    text, name = decoded(data, "a.txt")
    assert text == content.removeprefix("\ufeff" if encoding == "utf-8" else "")
    assert TextDocument(text, name, []).with_segments([]) == data


def test_a_text_that_stays_the_same_is_copied_unless_it_goes_into_a_target():
    place = Place(1, 2, Segment("b"), lambda segment: segment.text.upper())
    for places, expected in (([place], b"abc"), ([place._replace(is_target=True)], b"aBc")):
        document = TextDocument("abc", "utf-8", places)
        assert document.with_segments(document.segments) == expected
    assert TextDocument("abc", "utf-8", [place]).with_segments([Segment("x")]) == b"aXc"


def test_half_a_character_is_a_question_mark_where_a_format_has_no_escapes():
    document = TextDocument("abc", "utf-8", [Place(1, 2, Segment("b"), lambda segment: segment.text)])
    assert document.with_segments([Segment("\ud83d")]) == b"a?c"


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"a\n\xff", "a.txt:2: is not UTF-8 text"), (b"\xff\xfea", "a.txt:1: is not UTF-16-LE text")],
)
def test_other_encodings_are_refused(data, message):
    with pytest.raises(InputError, match=message):
        decoded(data, "a.txt")


def test_tags_are_written_at_their_positions_and_only_texts_get_escapes():
    tags = (Tag(0, "<a>", "open"), Tag(1, "</a>", "close"), Tag(1, "<br>", "empty"), Tag(2, "<hr>", "empty"))
    assert with_tags(Segment("xy", tags), str.upper) == "<a>X</a><br>Y<hr>"


@given(texts)
def test_a_text_is_its_edges_and_what_is_between(text):
    assert "".join(edges(text)) == text
    assert edges(text)[1] == text.strip()


@given(st.text())
def test_a_text_without_surrogates_is_whole(text):
    assert whole(text) == text
    assert whole(f"\ud83d{text}") == f"\ufffd{text}"
    assert whole(f"{text}\ud83d\ude00") == f"{text}😀"


@pytest.mark.parametrize("text", ["btn-primary", "user.name", "maxItems", "MAX_SIZE", "#ff0000", "en-US", "a/b", "x:y"])
def test_names_that_programs_read_are_identifiers(text):
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["Save", "save", "Check-in", "a dog", "OK", "Zimmer-Nr.", "", "3", "#tag!"])
def test_words_are_not_identifiers(text):
    assert not is_identifier(text)
