import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.sequences import segments, sequence
from heedful.text.tokenizer import BOS, EOS, PAD

rows = st.lists(st.integers(5, 97), max_size=13)


@given(rows, st.integers(8, 19))
def test_a_text_stands_between_its_marks_and_loses_its_end(first, longest):
    found = sequence(first, longest=longest)
    assert found == [BOS, *first[: longest - 2], EOS]


@given(rows, rows, st.integers(8, 29))
def test_of_a_pair_the_longer_text_loses_its_end_first(first, second, longest):
    a, b = list(first), list(second)
    while len(a) + len(b) > longest - 3:
        (a if len(a) > len(b) else b).pop()
    found = sequence(first, second, longest=longest)
    assert found == [BOS, *a, EOS, *b, EOS]


@given(st.lists(st.tuples(rows, st.none() | rows), min_size=1, max_size=5))
def test_segments_tell_the_second_text_and_its_end_from_all_else(pairs):
    found = [sequence(a, b, longest=29) for a, b in pairs]
    ids = np.full((len(found), 31), PAD)
    want = np.zeros_like(ids)
    for row, (place, (_, b)) in enumerate(zip(found, pairs, strict=True)):
        ids[row, : len(place)] = place
        if b is not None:
            second = place[1:].index(EOS) + 2
            want[row, second : len(place)] = 1
    assert (segments(ids) == want).all()
