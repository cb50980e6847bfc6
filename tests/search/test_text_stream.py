"""Text as it becomes certain: characters stay whole, and nothing of a stop string gets out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.generation import TextStream


def fed(spellings: list[bytes], stop: tuple[str, ...] = (), prefix: str = "") -> TextStream:
    stream = TextStream(stop, prefix)
    for spelling in spellings:
        stream.feed(spelling)
    return stream


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


def plain(text: str, stop: list[str]) -> str:
    """The text up to the stop string that is complete first, reading character by character."""
    for end in range(1, len(text) + 1):
        if ending := [s for s in stop if text[:end].endswith(s)]:
            return text[: end - max(map(len, ending))]
    return text


@given(st.text("ab é語🙂", max_size=29), st.lists(st.text("ab é語", min_size=1, max_size=4), max_size=3), st.data())
def test_how_a_text_is_cut_into_tokens_does_not_matter(text, stop, data):
    sizes = data.draw(st.lists(st.integers(0, 5), max_size=31))
    stream = fed(cut(text.encode(), sizes), tuple(stop))
    assert plain(text, stop).startswith(stream.text)
    stream.feed(b"", final=True)
    assert stream.text == plain(text, stop)
    assert stream.stopped == any(s in text for s in stop)
    assert all(stream.parts)


@given(st.binary(max_size=23), st.lists(st.integers(0, 3), max_size=23))
def test_broken_bytes_read_as_if_decoded_at_once(data, sizes):
    stream = fed(cut(data, sizes))
    stream.feed(b"", final=True)
    assert stream.text == data.decode(errors="replace")


def test_a_character_appears_with_its_last_byte():
    stream = TextStream()
    for byte in "🙂":
        for last, value in enumerate(byte.encode()):
            stream.feed(bytes([value]))
            assert stream.parts == (["🙂"] if last == 3 else [])


def test_what_may_begin_a_stop_string_is_held_back_no_longer_than_needed():
    stream = TextStream(("END.", "DONE"))
    shown = []
    for piece in (b"a E", b"N", b"x", b"D", b"O", b"OEN", b"D", b"!"):
        stream.feed(piece)
        shown.append(stream.text)
    assert shown == ["a ", "a ", "a ENx", "a ENx", "a ENx", "a ENxDOO", "a ENxDOO", "a ENxDOOEND!"]


@pytest.mark.parametrize("sizes", [[], [1, 1], [2]])
@pytest.mark.parametrize(("stop", "text"), [(("abc", "b"), "a"), (("c", "bc"), "a"), (("d", "bc"), "a")])
def test_the_stop_string_that_is_complete_first_ends_it_and_the_longest_of_those(sizes, stop, text):
    assert fed(cut(b"abcd", sizes), stop).text == text


def test_after_a_stop_string_nothing_is_added():
    stream = fed([b"one", b" sto", b"p two", b" three"], (" stop",))
    assert (stream.text, stream.stopped) == ("one", True)
    stream.feed(b"four", final=True)
    assert stream.parts == ["one"]


def test_the_end_lets_go_of_what_was_held():
    stream = fed([b"so st"], ("stop",))
    assert stream.text == "so "
    stream.feed(b"", final=True)
    assert (stream.text, stream.stopped) == ("so st", False)


@pytest.mark.parametrize(("pieces", "text"), [([b" a", b" b"], "a b"), ([b"", b" ", b" a"], " a"), ([b"a"], "a")])
def test_only_the_first_space_is_taken_off(pieces, text):
    assert fed(pieces, prefix=" ").text == text
