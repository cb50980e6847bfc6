"""The alignment error rate counts links that are wrong, and links that are missing."""

import pytest

from heedful.errors import InputError
from heedful.metrics.alignment import alignment_error_rate


@pytest.mark.parametrize(
    ("links", "gold", "rate"),
    [
        ([[(0, 0), (1, 2)]], [[(1, 2), (0, 0)]], 0.0),
        ([[(0, 0)]], [[(0, 1)]], 1.0),
        ([[(0, 0), (1, 1)], []], [[(0, 0)], [(2, 3)]], 1 - 2 / 4),  # a link that is wrong, and one that is missing
        ([[(0, 0)], [(0, 0)]], [[(0, 0)], [(0, 0), (0, 1), (0, 2)]], 1 - 4 / 6),  # a pair with many links counts more
        ([[]], [[]], 0.0),
    ],
)
def test_the_rate_is_that_of_the_formula(links, gold, rate):
    assert alignment_error_rate(links, gold) == pytest.approx(rate)


def test_a_missing_alignment_is_reported():
    with pytest.raises(InputError, match="1 alignments, but 2 gold alignments"):
        alignment_error_rate([[]], [[], []])
