import pytest
import torch

from heedful.architectures.pooling import POOLINGS, AttentionPooler, PlainPooler, Pooler
from heedful.config.schema import ModelConfig

KEEP = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
REAL = [[0, 1, 2], [2, 3, 4], [1], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("name", "places"), [("first", [row[:1] for row in REAL]), ("last", [row[-1:] for row in REAL]), ("mean", REAL)]
)
def test_one_vector_stands_for_the_real_tokens_of_a_text(name, places):
    states = torch.randn(4, 5, 7)
    want = torch.stack([states[row, real].mean(0) for row, real in enumerate(places)])
    torch.testing.assert_close(POOLINGS[name](states, KEEP), want)


def test_attention_weighs_tokens_by_their_product_with_the_query():
    pooler, states = AttentionPooler(ModelConfig(d_model=7), "first"), torch.randn(4, 5, 7)
    torch.testing.assert_close(pooler(states, KEEP), POOLINGS["mean"](states, KEEP))
    query = torch.nn.init.normal_(pooler.query)
    for row, real in enumerate(REAL):
        scores = [torch.exp(states[row, token] @ query) for token in real]
        want = sum(score * states[row, token] for score, token in zip(scores, real, strict=True)) / sum(scores)
        torch.testing.assert_close(pooler(states, KEEP)[row], want)


@pytest.mark.parametrize("pooler", [PlainPooler, AttentionPooler])
def test_what_stands_in_the_padding_does_not_matter_to_other_poolers(pooler):
    states, pool = torch.randn(4, 5, 7), pooler(ModelConfig(d_model=7), "mean")
    other = torch.where(KEEP[:, :, None], states, 1e6)
    assert torch.equal(pool(states, KEEP), pool(other, KEEP))


@pytest.mark.parametrize("name", POOLINGS)
def test_what_stands_in_the_padding_does_not_matter(name):
    states, pooler = torch.randn(4, 5, 7), Pooler(ModelConfig(d_model=7), name)
    other = torch.where(KEEP[:, :, None], states, 1e6)
    assert torch.equal(pooler(states, KEEP), pooler(other, KEEP))
    assert (pooler(states, KEEP).abs() < 1).all()
