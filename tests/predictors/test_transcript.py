"""Subtitles have the form that players read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.predictors.transcript import Segment, Transcript, clock, cues, srt, tsv, vtt

SEGMENTS = [
    Segment(0.0, 2.5, "Good morning.", [5, 7], [-0.1, -0.2]),
    Segment(2.5, 3661.017, "a --> b", [11], [-0.3]),
]


def test_subrip():
    assert srt(SEGMENTS) == (
        "1\n00:00:00,000 --> 00:00:02,500\nGood morning.\n\n2\n00:00:02,500 --> 01:01:01,017\na -> b\n"
    )


def test_webvtt():
    assert vtt(SEGMENTS) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nGood morning.\n\n00:00:02.500 --> 01:01:01.017\na --&gt; b\n"
    )


def test_signs_that_would_begin_a_tag_are_spelled_out_in_webvtt():
    assert vtt([Segment(0.0, 1.0, "a<b & <unk>", [], [])]).endswith("\na&lt;b &amp; &lt;unk&gt;\n")


def test_silence_has_no_subtitles():
    assert srt([]) == ""
    assert vtt([]) == "WEBVTT\n"


@given(st.integers(0, 10**9))
def test_a_clock_tells_the_thousandths(thousandths):
    hours, minutes, seconds = clock(thousandths / 1000).split(":")
    assert int(hours) * 3600 + int(minutes) * 60 + float(seconds) == pytest.approx(thousandths / 1000, abs=1e-6)
    assert int(minutes) < 60
    assert len(seconds) == 6


def test_the_text_is_that_of_all_segments():
    assert str(Transcript([*SEGMENTS, Segment(3.0, 4.0, "", [], [])], 5.0, "en")) == "Good morning. a --> b"


def of(start, end, text) -> Segment:
    return Segment(float(start), float(end), text, [1], [-1.0])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["你好。", "我们走吧"], "你好。我们走吧"),
        (["今日は", "いい天気"], "今日はいい天気"),
        (["안녕", "하세요"], "안녕 하세요"),
        (["你好", "Tom", "再见"], "你好 Tom 再见"),
        (["to be", "or not"], "to be or not"),
        (["a\nb", "c  d"], "a\nb c  d"),
    ],
)
def test_texts_are_joined_as_their_script_is_written(texts, expected):
    segments = [of(place, place + 1, text) for place, text in enumerate(texts)]
    assert Transcript(segments, 9.0).text == expected


def test_a_cue_is_joined_as_its_script_is_written():
    assert "今日はいい天気" in srt([of(0, 1, "今日は"), of(1, 2, "いい天気")])


@pytest.mark.parametrize("write", [srt, vtt, tsv])
def test_a_line_end_in_a_text_does_not_end_its_cue(write):
    segments = [of(0, 1, "a\n\nb."), of(1, 2, "c")]
    assert "a b." in write(segments)
    assert write(segments).count("\n") == write([of(0, 1, "a b."), of(1, 2, "c")]).count("\n")


@pytest.mark.parametrize(
    ("texts", "times", "expected"),
    [
        (["And so my", "fellow Americans."], [(0, 2), (2, 4)], ["And so my fellow Americans."]),
        (["And so.", "My fellow"], [(0, 2), (2, 4)], ["And so.", "My fellow"]),
        (['He said "no."', "Then"], [(0, 2), (2, 4)], ['He said "no."', "Then"]),
        (["And so", "my fellow"], [(0, 2), (3.5, 5)], ["And so", "my fellow"]),
        (["And so", "my fellow"], [(0, 5), (5, 9)], ["And so", "my fellow"]),
        (["a" * 50, "b" * 40], [(0, 2), (2, 4)], ["a" * 50, "b" * 40]),
        (["你" * 21, "好" * 21], [(0, 2), (2, 4)], ["你" * 21, "好" * 21]),
        (["你好。", "世界"], [(0, 2), (2, 4)], ["你好。", "世界"]),
    ],
)
def test_segments_of_one_sentence_are_one_cue_where_it_holds_them(texts, times, expected):
    segments = [of(start, end, text) for (start, end), text in zip(times, texts, strict=True)]
    found = cues(segments)
    assert [cue.text for cue in found] == expected
    assert (found[0].start, found[-1].end) == (times[0][0], times[-1][1])
    assert sum(len(cue.tokens) for cue in found) == len(segments)


def test_a_table_has_milliseconds():
    assert tsv([of(0.02, 1.5, "One."), of(2.0, 3.0, "Two.")]) == "start\tend\ttext\n20\t1500\tOne.\n2000\t3000\tTwo.\n"
