"""Where windows begin, and what their tokens become, by hand."""

import numpy as np
import pytest

from heedful.config.modalities import AudioConfig
from heedful.media.audio_reader import ArrayAudioReader
from heedful.predictors.speech import OverlappingWindows, Reading, TimedTokens, TimestampedWindows, seam
from heedful.text.speech_tokens import SpeechTokens

T = range(100, 1601)  # time stamps up to 30 seconds
TOKENS = SpeechTokens(languages={}, transcribe=None, without_times=None, silence=None, times=T, controls=frozenset(T))
RATE = 50  # one sample for each time stamp


def taken(tokens, seconds=70.0, begin=0):
    """The segments of a window of 30 seconds, and the second at which the next begins."""
    recording = ArrayAudioReader(np.zeros(round(seconds * RATE), np.float32), AudioConfig(rate=RATE))
    windows = TimestampedWindows(30 * RATE, TOKENS)
    reading = Reading(recording, windows, begin=begin)
    windows.take(reading, TimedTokens(tokens, [-0.5] * len(tokens)))
    return [(start, end, list(said.tokens)) for start, end, said in reading.segments], reading.begin / RATE


def test_a_window_that_ends_between_two_segments_goes_on_where_the_last_one_ended():
    tokens = [T[0], 7, 11, T[250], T[250], 13, T[900], T[900]]
    assert taken(tokens) == ([(0.0, 5.0, [7, 11]), (5.0, 18.0, [13])], 18.0)


def test_a_segment_without_an_end_is_read_again():
    assert taken([T[0], 7, T[250], T[300], 13, 17]) == ([(0.0, 5.0, [7])], 5.0)


def test_after_a_last_time_stamp_that_is_alone_comes_the_next_window():
    assert taken([T[10], 7, T[250], T[300], 13, T[1400]]) == ([(0.2, 5.0, [7]), (6.0, 28.0, [13])], 30.0)


def test_a_single_segment_is_the_whole_window():
    assert taken([T[0], 7, T[700]]) == ([(0.0, 14.0, [7])], 30.0)
    assert taken([T[25], 7]) == ([(0.5, 30.0, [7])], 30.0)


@pytest.mark.parametrize("text", [". .", "...", "。", "- ?", ""])
def test_a_segment_of_punctuation_between_time_stamps_is_left_out(text):
    recording = ArrayAudioReader(np.zeros(70 * RATE, np.float32), AudioConfig(rate=RATE))
    reading = Reading(recording, TimestampedWindows(30 * RATE, TOKENS))
    reading.windows.take(reading, TimedTokens([T[0], 7, T[250], T[250], 13, T[900], T[900]], [-0.5] * 7))
    found = reading.transcript(lambda tokens: text if 7 in tokens else "你好")
    assert [(segment.start, segment.text) for segment in found.segments] == [(5.0, "你好")]


def test_punctuation_is_kept_where_windows_are_joined_without_time_stamps():
    recording = ArrayAudioReader(np.zeros(30 * RATE, np.float32), AudioConfig(rate=RATE))
    reading = Reading(recording, OverlappingWindows(30 * RATE, 0.2))
    reading.windows.take(reading, TimedTokens([13], [-0.5]))
    assert reading.transcript(lambda _: ".").text == "."


def test_times_start_at_the_window_and_end_with_the_recording():
    assert taken([T[50], 7, T[1500]], seconds=45.0, begin=30 * RATE) == ([(31.0, 45.0, [7])], 45.0)


def test_a_segment_without_a_length_has_the_time_since_the_one_before():
    assert taken([T[1500], 7, T[1500]], seconds=30.0) == ([(0.0, 30.0, [7])], 30.0)
    two = [T[0], 5, T[700], T[1500], 7, T[1500]]
    assert taken(two, seconds=30.0) == ([(0.0, 14.0, [5]), (14.0, 30.0, [7])], 30.0)


def test_a_segment_for_which_no_time_is_left_is_a_part_of_the_one_before():
    assert taken([T[0], 5, T[1500], T[1500], 7, T[1500]], seconds=30.0) == ([(0.0, 30.0, [5, 7])], 30.0)


def test_no_window_reaches_from_one_stretch_into_the_next():
    recording = ArrayAudioReader(np.zeros(70 * RATE, np.float32), AudioConfig(rate=RATE))
    for windows in (TimestampedWindows(30 * RATE, TOKENS), OverlappingWindows(30 * RATE, 0.2)):
        stretches = [(5 * RATE, 9 * RATE), (20 * RATE, 60 * RATE)]
        reading = Reading(recording, windows, stretches)
        seen = []
        while not reading.finished:
            seen.append((reading.begin / RATE, (reading.begin + reading.window_length) / RATE))
            windows.skip(reading)
        assert seen[0] == (5.0, 9.0)
        assert seen[1] == (20.0, 50.0)
        assert seen[-1][1] == 60.0
        assert reading.seconds == 70.0


def test_an_output_that_was_cut_or_is_empty_moves_on():
    assert taken([T[0]]) == ([], 30.0)
    assert taken([]) == ([], 30.0)


@pytest.mark.parametrize(
    ("left", "right", "share", "cuts"),
    [
        ([1, 2, 3, 4, 5, 6], [4, 5, 6, 7, 8, 9], 1.0, (4, 1)),
        ([1, 2, 3, 4, 5, 99], [98, 3, 4, 5, 7, 8], 1.0, (3, 2)),
        ([1, 2, 3], [7, 8, 9], 1.0, (3, 0)),
        ([1, 2, 3, 7, 8, 9], [9, 8, 7, 1, 2, 3], 0.5, (3, 2)),
        ([], [1, 2], 0.5, (0, 0)),
        ([1, 2], [], 0.5, (2, 0)),
    ],
)
def test_outputs_are_joined_in_the_middle_of_what_both_say(left, right, share, cuts):
    assert seam(left, right, share) == cuts


def test_a_silent_window_moves_on_with_and_without_time_stamps():
    recording = ArrayAudioReader(np.zeros(70 * RATE, np.float32), AudioConfig(rate=RATE))
    begins = {}
    for windows in (TimestampedWindows(30 * RATE, TOKENS), OverlappingWindows(30 * RATE, 0.1)):
        reading = Reading(recording, windows)
        steps = []
        while not reading.finished:
            steps.append(reading.begin / RATE)
            windows.skip(reading)
        begins[type(windows)] = steps
        assert reading.transcript(str).text in ("", "[] [] []")
    assert begins == {TimestampedWindows: [0, 30, 60], OverlappingWindows: [0, 27, 54]}


def test_an_end_that_is_too_short_for_speech_is_not_read():
    recording = ArrayAudioReader(np.zeros(30 * RATE + 4, np.float32), AudioConfig(rate=RATE))
    windows = TimestampedWindows(30 * RATE, TOKENS)
    assert Reading(recording, windows, begin=30 * RATE).finished
    assert not Reading(recording, windows, begin=30 * RATE - 5).finished
    short = ArrayAudioReader(np.zeros(3, np.float32), AudioConfig(rate=RATE))
    assert not Reading(short, windows).finished


def test_more_than_half_in_common_is_compared_as_a_whole():
    assert seam(range(10), range(2, 12), 1.2) == (6, 4)
