"""Subtitles: a plain reader of cues finds the new words, and times, numbers, tags and notes are the same."""

import html
import re
from itertools import combinations

import pytest
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, encoded, encodings
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.subtitles import LINE_COLUMNS, read, wrapped
from heedful.errors import InputError

sentences = st.lists(
    st.sampled_from(["Hello", "there", "my", "friend,", "it's", "7", "o'clock.", "很好"]), min_size=1, max_size=6
)
lines = sentences.map(" ".join)
tagged = lines | lines.map("<i>{}</i>".format) | lines.map("<b>A</b> <font color='red'>{}</font>".format)
cue_texts = st.lists(tagged, min_size=1, max_size=3).map("\n".join) | st.tuples(lines, lines).map(
    "- {0[0]}\n- {0[1]}".format
)


@st.composite
def subrip(draw: st.DrawFn) -> str:
    cues = draw(st.lists(cue_texts, max_size=4))
    heads = [f"{i + 1}\n00:00:{i:02},000 --> 00:00:{i:02},{draw(st.integers(0, 9))}00\n" for i in range(len(cues))]
    place = draw(st.sampled_from(["", "{\\an8}"]))
    content = "".join(f"{head}{place}{cue}\n\n" for head, cue in zip(heads, cues, strict=True))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return (content.rstrip("\n") if draw(st.booleans()) else content).replace("\n", newline)


@st.composite
def webvtt(draw: st.DrawFn) -> str:
    blocks = ["WEBVTT" + draw(st.sampled_from(["", " - title", "\nX-KEY=1"]))]
    for i, cue in enumerate(draw(st.lists(cue_texts, max_size=4))):
        blocks += draw(
            st.lists(st.sampled_from(["NOTE some\nnote", "STYLE\n::cue { color: red }", "REGION\nid:a"]), max_size=1)
        )
        name = draw(st.sampled_from(["", f"{i}\n", "intro\n"]))
        settings = draw(st.sampled_from(["", " align:start position:10%"]))
        voice = draw(st.sampled_from(["", "<v Ann>", "<00:00:00.500>", "&amp;"]))
        blocks.append(f"{name}00:{i:02}.000 --> 01:00:{i:02}.500{settings}\n{voice}{cue}")
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return ("\n\n".join(blocks) + draw(st.sampled_from(["", "\n"]))).replace("\n", newline)


files = st.tuples(subrip(), st.just("a.srt")) | st.tuples(webvtt(), st.just("a.vtt"))


def words(text: str) -> str:
    """Text without whitespace: where lines are broken does not matter, and Chinese has none."""
    return re.sub(r"\s", "", text)


def cues(content: str) -> list[tuple[str, list[str]]]:
    """Times and lines of each cue, by a plain reader."""
    blocks = re.split(r"\n\n+", content.replace("\r\n", "\n").strip("\n"))
    parts = [re.match(r"(?:[^\n]*\n)?([^\n]*-->[^\n]*)(?:\n(.*))?\Z", block, re.DOTALL) for block in blocks]
    return [(part[1], (part[2] or "").split("\n")) for part in parts if part]


@given(files, encodings)
def test_a_file_whose_texts_stay_the_same_stays_the_same(file, encoding):
    document = read(encoded(file[0], encoding), file[1])
    assert document.with_segments(document.segments) == encoded(file[0], encoding)


@given(files, encodings, st.data())
def test_new_texts_are_read_and_all_else_stays(file, encoding, data):
    content, name = file
    document = read(encoded(content, encoding), name)
    segments = changed(document, data.draw)
    output = document.with_segments(segments).decode(encoding).removeprefix("\ufeff")
    before, after = cues(content), cues(output)
    assert [times for times, _ in before] == [times for times, _ in after]
    assert all(len(new) <= len(old) for (_, old), (_, new) in zip(before, after, strict=True))
    assert re.findall(r"(?m)^(?:NOTE|STYLE|REGION).*\n.*$", content) == re.findall(
        r"(?m)^(?:NOTE|STYLE|REGION).*\n.*$", output
    )
    text = "".join(line for _, each in after for line in each)
    tags = r"<[^<>]*>" if name == "a.vtt" else r"</?(?:i|b|font)\b[^<>]*>|\{\\an8\}"
    tags_before = re.findall(tags, "".join(line for _, each in before for line in each))
    assert re.findall(tags, text) == tags_before
    shown = re.sub(tags, "", text)
    shown = html.unescape(shown) if name == "a.vtt" else shown
    new = "".join(segment.text for segment in segments).replace("\ud83d", "?")
    if name == "a.srt":
        shown = shown.translate(str.maketrans("‹›❴❵", "<>{}"))
        new, shown = (text.replace("-->", "→") for text in (new, shown))  # a tag may divide an arrow
    assert re.sub("[-&]", "", words(shown)) == re.sub("[-&]", "", words(new))  # of dialogues, and before the text


@given(files, st.data())
def test_broken_files_are_refused_in_one_line(file, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, file[0].encode()), file[1])


@given(st.binary(max_size=31), st.sampled_from(["a.srt", "a.vtt"]))
def test_arbitrary_bytes_are_refused_in_one_line(data, name):
    check_that_only_input_errors_are_raised(read, data, name)


@given(st.lists(st.integers(1, 23), max_size=8), st.integers(1, 4))
def test_lines_are_as_few_and_as_even_as_any(lengths, line_count):
    text = " ".join("x" * length for length in lengths)
    spans = wrapped(text, line_count)
    assert "".join(text[begin:end] for begin, end in spans).replace(" ", "") == text.replace(" ", "")
    partitions = [
        [lengths[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(lengths)), strict=True)]
        for count in range(min(line_count, len(lengths)))
        for cuts in combinations(range(1, len(lengths)), count)
    ]
    widths = [(len(each), max(sum(line) + len(line) - 1 for line in each)) for each in partitions]
    fitting = [count for count, width in widths if width <= LINE_COLUMNS]
    count = min(fitting, default=max((count for count, _ in widths), default=0))
    assert len(spans) <= count
    assert max((end - begin for begin, end in spans), default=0) == min((w for c, w in widths if c == count), default=0)


def segments(content: str, name: str = "a.srt") -> list[str]:
    return [segment.text for segment in read(content.encode(), name).segments]


def translated(content: str, *new: str, name: str = "a.srt") -> str:
    document = read(content.encode(), name)
    pairs = zip(document.segments, new, strict=True)
    return document.with_segments([segment._replace(text=text) for segment, text in pairs]).decode()


HEAD = "1\n00:00:01,000 --> 00:00:02,500\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One sentence on\ntwo lines.", ["One sentence on two lines."]),
        ("- Hello.\n- Hi.", ["Hello.", "Hi."]),
        ("<i>- Hello\nthere.</i>\n–Hi.", ["Hello there.", "Hi."]),
        ("Hello.\n- Hi.", ["Hello.", "Hi."]),
        ("It was\n- they say - cold.", ["It was - they say - cold."]),
        ("-5 degrees", ["-5 degrees"]),
        ("-- and then", ["-- and then"]),
        ("你好，\n世界。", ["你好，世界。"]),
        ("Two\n\nparagraphs", ["Two", "paragraphs"]),
        ("12", ["12"]),
        ("♪", ["♪"]),
        ("<i> </i>", []),
    ],
)
def test_lines_are_joined_unless_another_person_speaks(text, expected):
    assert segments(f"{HEAD}{text}\n\n2\n00:00:03,000 --> 00:00:03,000\nNext.\n") == [*expected, "Next."]


def test_tags_around_a_text_stay_and_those_within_are_tags_of_the_segment():
    content = f"{HEAD}{{\\an8}}<i>Hello <b>my</b> friend</i>\n"
    [segment] = read(content.encode(), "a.srt").segments
    assert segment.text == "Hello my friend"
    assert segment.tags == ((6, "<b>", "open"), (8, "</b>", "close"))
    content = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi <c.x>&lt;you <00:01.500>there\n"
    [segment] = read(content.encode(), "a.vtt").segments
    assert segment.text == "Hi <you there"
    assert segment.tags == ((3, "<c.x>", "empty"), (8, "<00:01.500>", "empty"))


def test_a_translation_is_wrapped_again():
    long = "Dies ist eine deutlich längere Übersetzung als das Original."
    assert translated(f"{HEAD}Short\r\ntext\r\n", long) == (
        f"{HEAD}Dies ist eine deutlich längere\r\nÜbersetzung als das Original.\r\n"
    )
    assert translated(f"{HEAD}Short\n", long) == f"{HEAD}{long}\n"
    assert translated(f"{HEAD}Two\nlines\n", "Kurz genug") == f"{HEAD}Kurz genug\n"
    chinese = "这是一个很长的句子，它的长度超过了一行所能容纳的字数。"
    assert translated(f"{HEAD}Two\nlines\n", chinese) == f"{HEAD}{chinese[:14]}\n{chinese[14:]}\n"


def test_a_text_that_becomes_empty_does_not_end_the_cue():
    content = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n- Hi.\n"
    assert translated(content, " ", "Hallo.", name="a.vtt") == content.replace("Hello.", "\xa0").replace("Hi", "Hallo")


def test_what_would_be_a_time_or_a_tag_is_written_in_other_characters():
    assert translated(f"{HEAD}a\n", "x --> <i>{\\b1} < 3") == f"{HEAD}x → ‹i›❴\\b1❵ < 3\n"
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    assert translated(f"{vtt}a\n", "x --> <i> & y", name="a.vtt") == f"{vtt}x --&gt; &lt;i&gt; &amp; y\n"


def test_a_cue_of_no_length_and_one_without_text_are_cues():
    content = (
        "1\n00:00:01,000 --> 00:00:01,000\nHello\n\n2\n00:00:01,000 --> 00:00:02,000\n\n3\n0:1:2 --> 0:1:3.5 X1:0\nHi"
    )
    assert segments(content) == ["Hello", "Hi"]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("1\n00:00:01,000 --> end\nHello\n", "a.srt", "a.srt:2: the times of this subtitle cannot be read"),
        (f"{HEAD}a --> b\n\n00:00:0x,000 --> 00:00:09,000\nHello\n", "a.srt", "a.srt:5: the times"),
        ("WEBVTT\n\n00:01.000 -->\nHello\n", "a.vtt", "a.vtt:3: the times"),
        ("Hello\n", "a.srt", "a.srt:1: has no subtitles"),
        (f"{HEAD}Hello\n", "a.vtt", "a.vtt:1: does not begin with WEBVTT"),
    ],
)
def test_the_message_names_the_line(content, name, message):
    with pytest.raises(InputError, match=message):
        read(content.encode(), name)


def test_an_empty_file_has_no_texts():
    assert segments("") == segments("WEBVTT\n", "a.vtt") == []
