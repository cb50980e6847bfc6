"""Subtitles have the form that players read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decode.transcript import Segment, Transcript, clock, srt, vtt

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


def test_the_text_is_one_line():
    assert str(Transcript([*SEGMENTS, Segment(3.0, 4.0, "", [], [])], 5.0, "en")) == "Good morning. a --> b"
