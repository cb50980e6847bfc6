"""Windows over a long text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.sequences import Window, windows

sizes = pytest.mark.parametrize("room", [1, 2, 3, 7, 12])


@sizes
@given(count=st.integers(0, 97))
def test_each_token_is_shown_best_by_one_window(room, count):
    found = windows(count, room)
    assert [token for w in found for token in range(w.first, w.stop)] == list(range(count))
    assert all(0 <= w.begin <= w.first <= w.stop <= w.end <= count and w.end - w.begin <= room for w in found)


@sizes
@given(count=st.integers(0, 97))
def test_no_window_shows_more_around_a_token_than_its_own(room, count):
    found = windows(count, room)

    def shown(window: Window, token: int) -> int:
        """How much context there is on the poorer side; a side where the text ends lacks nothing."""
        before = token - window.begin if window.begin else count
        after = window.end - 1 - token if window.end < count else count
        return min(before, after)

    for own in found:
        for token in range(own.first, own.stop):
            others = [shown(window, token) for window in found if window.begin <= token < window.end]
            assert shown(own, token) == max(others)


@given(count=st.integers(13, 97))
def test_neighbours_share_half_of_a_window_and_all_are_full(count):
    found = windows(count, 12)
    assert all(before.end - after.begin >= 6 for before, after in pairwise(found))
    assert all(window.end - window.begin == 12 for window in found)
    assert len(found) == -(-(count - 12) // 6) + 1


def test_a_short_text_is_one_window():
    assert windows(0, 7) == [Window(0, 0, 0, 0)]
    assert windows(7, 7) == [Window(0, 7, 0, 7)]
