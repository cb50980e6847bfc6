import pytest

from heedful.config.schema import DecodeConfig
from heedful.decode.hypothesis import hypothesis
from heedful.text.tokenizer import EOS

SCORES = [-0.5, -2.0, -0.25, -1.25]


@pytest.mark.parametrize(
    ("penalty", "alpha", "score"),
    [("average", 1.0, -1.0), ("average", 0.5, -2.0), ("gnmt", 1.0, -4.0 / 1.5), ("gnmt", 0.0, -4.0)],
)
def test_the_length_that_is_penalised_counts_eos(penalty, alpha, score):
    found = hypothesis([5, 7, 11, EOS], SCORES, DecodeConfig(penalty=penalty, alpha=alpha))
    assert found.score == pytest.approx(score)
    assert found.tokens == [5, 7, 11]
    assert found.token_scores == SCORES
    assert found.complete


def test_an_output_that_was_cut_is_scored_as_it_is():
    found = hypothesis([5, 7, 11, 13], SCORES, DecodeConfig(penalty="average", alpha=1.0))
    assert found.score == pytest.approx(-1.0)
    assert found.tokens == [5, 7, 11, 13]
    assert not found.complete
