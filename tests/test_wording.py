"""Numbers and names in sentences are read at a glance."""

from pathlib import Path

import pytest

from heedful.wording import counted, did_you_mean, duration, either, part_of, shown_name, singular, speed


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0 s"), (119, "119 s"), (121, "2 min"), (7199, "120 min"), (9000, "2.5 h")]
)
def test_durations_are_read_at_a_glance(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(("names", "words"), [(["a"], "a"), (["a", "b"], "a or b"), ([1, 2, 3, 4], "1, 2, 3 or 4")])
def test_alternatives_are_listed_with_commas_and_one_or(names, words):
    assert either(names) == words


@pytest.mark.parametrize(("rate", "words"), [(0.0312, "0.031"), (3.14, "3.1"), (11.7, "12"), (12345.6, "12,346")])
def test_speeds_are_read_at_a_glance(rate, words):
    assert speed(rate) == words


@pytest.mark.parametrize(("number", "words"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (5003, "5,003 lines")])
def test_one_thing_is_told_in_the_singular(number, words):
    assert counted(number, "lines") == words


@pytest.mark.parametrize(
    ("things", "thing"),
    [
        ("updates", "update"),
        ("queries", "query"),
        ("batches", "batch"),
        ("classes", "class"),
        ("bytes", "byte"),
        ("seconds of audio", "second of audio"),
    ],
)
def test_the_singular_is_that_of_english(things, thing):
    assert singular(things) == thing


def test_a_part_of_one_thing_is_the_thing():
    assert [part_of(1, 1, "lines"), part_of(1, 3, "lines"), part_of(2, 1200, "lines")] == [
        "the line",
        "1 of 3 lines",
        "2 of 1,200 lines",
    ]


def test_what_may_be_meant_is_in_quotes():
    assert did_you_mean(["de"]) == 'did you mean "de"?'
    assert did_you_mean([Path("a b"), "c"]) == 'did you mean "a b" or "c"?'


def test_a_name_that_is_no_utf8_can_be_shown():
    assert shown_name(Path("here/caf\udce9.png")) == "caf\ufffd.png"
