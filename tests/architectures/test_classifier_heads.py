"""Heads over a backbone: what is special about a GPT, and one vector for the tokens of a text."""

from functools import partial

import pytest
import torch

from children import VOCABULARY, ids, ones, shape, stirred
from heedful.architectures import LanguageModel
from heedful.architectures.heads import POOLINGS, AttentionPooler, PlainPooler, Pooler
from heedful.config.schema import ModelConfig
from heedful.registry import POSITIONS

KEEP = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
REAL = [[0, 1, 2], [2, 3, 4], [1], [0, 1, 2, 3, 4]]
close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


def model(*given, **more) -> LanguageModel:
    return stirred(LanguageModel(shape(*given, family="decoder", **more), VOCABULARY))


@pytest.mark.parametrize("positions", POSITIONS)
def test_prompts_of_one_token_can_be_chosen_before_anything_is_read(positions):
    built, prompts = model(positions, "pre", "layer", 2), ids(3, 1)
    state = built.start(prompts, ones(prompts))
    state.select(torch.tensor([2, 2, 0, 1]))
    close(state.step(prompts[[2, 2, 0, 1], 0]), built(prompts, ones(prompts))[[2, 2, 0, 1], 0])


def test_a_tied_model_has_one_matrix_for_both_ends():
    assert (tied := model("none", "pre", "layer", None)).output.weight is tied.backbone.embedding.weight
    assert (
        apart := model("none", "pre", "layer", None, tie="none")
    ).output.weight is not apart.backbone.embedding.weight


def test_learned_positions_say_when_they_end():
    built = model("learned", "pre", "layer", None, max_positions=7)
    with pytest.raises(IndexError, match=r"8 tokens, but model\.max_positions is 7"):
        built(ids(1, 8), ones(ids(1, 8)))


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
