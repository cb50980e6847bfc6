import pytest

from heedful.config.schema import DecodeConfig
from heedful.search.hypothesis import LENGTH_PENALTIES, Hypothesis
from heedful.text.tokenizer import EOS

SCORES = [-0.5, -2.0, -0.25, -1.25]


@pytest.mark.parametrize(
    ("penalty", "alpha", "score"),
    [("average", 1.0, -1.0), ("average", 0.5, -2.0), ("gnmt", 1.0, -4.0 / 1.5), ("gnmt", 0.0, -4.0)],
)
def test_the_length_that_is_penalised_counts_eos(penalty, alpha, score):
    found = Hypothesis.scored([5, 7, 11, EOS], SCORES, DecodeConfig(penalty=penalty, alpha=alpha))
    assert found.score == pytest.approx(score)
    assert found.tokens == [5, 7, 11]
    assert found.token_scores == SCORES
    assert found.complete


def test_an_output_that_was_cut_is_scored_as_it_is():
    found = Hypothesis.scored([5, 7, 11, 13], SCORES, DecodeConfig(penalty="average", alpha=1.0))
    assert found.score == pytest.approx(-1.0)
    assert found.tokens == [5, 7, 11, 13]
    assert not found.complete


# Computed by hand from the formulas: ((5 + 1) / 6)^a = 1; ((5 + 7) / 6)^1 = 2; ((5 + 19) / 6)^0.5 = 2; ...
KNOWN = [
    ("gnmt", 1, 0.6, 1.0),
    ("gnmt", 7, 1.0, 2.0),
    ("gnmt", 19, 0.5, 2.0),
    ("gnmt", 13, 0.6, 3**0.6),
    ("gnmt", 11, 0.0, 1.0),
    ("average", 1, 0.6, 1.0),
    ("average", 7, 1.0, 7.0),
    ("average", 9, 0.5, 3.0),
    ("average", 5, 2.0, 25.0),
    ("average", 11, 0.0, 1.0),
    ("average_text", 1, 0.6, 1.0),
    ("average_text", 8, 1.0, 7.0),
    ("average_text", 10, 0.5, 3.0),
]


@pytest.mark.parametrize(("name", "length", "alpha", "value"), KNOWN)
def test_penalties_have_their_known_values(name, length, alpha, value):
    assert LENGTH_PENALTIES[name](length, alpha) == pytest.approx(value)


@pytest.mark.parametrize("name", LENGTH_PENALTIES)
def test_penalties_never_fall_as_an_output_grows(name):
    for alpha in (0.0, 0.3, 1.0, 2.0):
        values = [LENGTH_PENALTIES[name](length, alpha) for length in range(1, 60)]
        assert values == sorted(values)
