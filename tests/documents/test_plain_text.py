"""Lines of a text are found, joined where a sentence was wrapped, and written back in the same form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.document import Segment
from heedful.documents.plain_text import read
from heedful.errors import InputError

WRAPPED = """\
Title

  On Sunday morning we went to the park because the weather was very
  nice. My little brother played football with his friends, and I
  read.
- Buy milk.
\tA line alone\t
"""


def texts(content):
    return [segment.text for segment in read(content.encode(), "a.txt").segments]


def test_each_line_is_a_text_and_a_wrapped_sentence_is_one_text():
    assert texts(WRAPPED) == [
        "Title",
        "On Sunday morning we went to the park because the weather was very nice. My little brother played football "
        "with his friends, and I read.",
        "- Buy milk.",
        "A line alone",
    ]


def test_a_wrapped_sentence_is_wrapped_again_with_its_indentation():
    document = read(WRAPPED.encode(), "a.txt")
    longer = [Segment(segment.text.replace("e", "eee")) for segment in document.segments]
    written = document.with_segments(longer).decode()
    assert texts(written) == [segment.text for segment in longer]
    lines = written.splitlines()
    assert all(line.startswith("  ") for line in lines[2:-2])
    assert max(map(len, lines)) <= 68


@pytest.mark.parametrize(
    "content",
    [
        "Max Mustermann\nHauptstraße 5\n12345 Berlin",  # too narrow for prose
        "One sentence on a line which is as long as lines are in prose.\nAnother sentence.",
        f"{'word ' * 40}\nand a line after a line of 200 characters",
        "A short line\nand a line that is a good deal longer than the first one was, it seems",
    ],
)
def test_lines_that_were_not_wrapped_stay_apart(content):
    assert texts(content) == [line.strip() for line in content.split("\n")]


def test_chinese_lines_are_joined_without_a_space():
    first, second = "我们星期天早上去了公园" * 4, "因为天气很好。"
    assert texts(f"{first}\n{second}") == [first + second]


LINES = st.lists(st.text(st.sampled_from("ab .-\t\u3000我🙂\x0b\u2028"), max_size=60), max_size=8)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(LINES, ENDS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_a_text_that_does_not_change_stays_the_same_in_every_byte(lines, end, encoding):
    data = end.join(lines).encode(encoding)
    document = read(data, "a.txt")
    assert document.with_segments(list(document.segments)) == data


@given(LINES, ENDS)
def test_only_the_texts_change(lines, end):
    document = read(end.join(lines).encode(), "a.txt")
    changed = read(document.with_segments([Segment(s.text.upper()) for s in document.segments]), "a.txt")
    assert "".join(s.text for s in changed.segments) == "".join(s.text for s in document.segments).upper()


def test_a_file_in_another_encoding_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"^a.txt:2: is not UTF-8 text; convert the file to UTF-8$"):
        read("Grüße\n".encode() + "Grüße".encode("latin-1"), "a.txt")
