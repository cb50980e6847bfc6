import numpy as np
import pytest

from heedful.errors import InputError
from heedful.text.sequences import pad, truncate


def test_rows_are_filled_to_a_fixed_length():
    ids, padding_mask = pad([[345, 128, 672]], 10)
    assert ids.tolist() == [[345, 128, 672, 0, 0, 0, 0, 0, 0, 0]]
    assert padding_mask.tolist() == [[True] * 3 + [False] * 7]


def test_rows_are_filled_to_the_longest():
    ids, padding_mask = pad([[5, 7], [], [2, 3, 11]])
    assert ids.tolist() == [[5, 7, 0], [0, 0, 0], [2, 3, 11]]
    assert padding_mask.sum(axis=1).tolist() == [2, 0, 3]
    assert ids.dtype == np.int64
    assert padding_mask.dtype == np.bool_


def test_padding_may_stand_on_the_left():
    ids, padding_mask = pad([[5, 7], [], [2, 3, 11]], 5, side="left")
    assert ids.tolist() == [[0, 0, 0, 5, 7], [0, 0, 0, 0, 0], [0, 0, 2, 3, 11]]
    assert padding_mask.tolist() == [[False] * 3 + [True] * 2, [False] * 5, [False] * 2 + [True] * 3]


def test_a_real_id_that_looks_like_padding_is_kept():
    assert pad([[0, 5]])[1].all()


def test_no_rows_are_no_rows():
    assert pad([])[0].shape == (0, 0)
    assert pad([], 7)[0].shape == (0, 7)


def test_rows_are_never_cut_in_silence():
    with pytest.raises(InputError, match="a row of 3 ids does not fit into a length of 2; truncate it, or pad to 3"):
        pad([[5], [2, 3, 11]], 2)


def test_truncating_keeps_the_beginning():
    assert truncate([[345, 128, 672, 3], [5], []], 2) == [[345, 128], [5], []]
    assert truncate([[5, 7]], 0) == [[]]
    with pytest.raises(InputError, match="cannot be truncated to -1"):
        truncate([[5, 7]], -1)
