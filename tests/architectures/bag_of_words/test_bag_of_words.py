"""Bag of words: the order of words does not matter (the baseline that word order is worth something only above)."""

import pytest
import torch

from children import ids, ones
from heedful.architectures import TextClassifier
from heedful.architectures.bag_of_words.settings import BagOfWordsConfig

CONFIGS = [
    BagOfWordsConfig(d_model=13, pooling=pooling, pooler=pooler)
    for pooling, pooler in ((None, "none"), ("sum", "dense"), ("mean", "none"), ("mean", "dense"), ("max", "none"))
]


@pytest.mark.parametrize("config", CONFIGS)
def test_any_order_of_the_words_gives_the_same_logits(config):
    model, tokens = TextClassifier(config, 23, 3).eval(), ids(5, 11)
    for _ in range(7):
        order = torch.randperm(11)
        torch.testing.assert_close(model(tokens[:, order], ones(tokens)), model(tokens, ones(tokens)))


def test_a_bag_of_words_is_linear_in_the_counts_of_words():
    model, tokens = TextClassifier(BagOfWordsConfig(d_model=13), 23, 3).eval(), ids(5, 11)
    counts = torch.nn.functional.one_hot(tokens, 23).sum(1).float()
    weight = model.output.weight @ model.backbone.embedding.weight.T
    torch.testing.assert_close(model(tokens, ones(tokens)), counts @ weight.T + model.output.bias)


def test_a_mean_of_vectors_is_linear_in_the_shares_of_words():
    model, tokens = TextClassifier(BagOfWordsConfig(d_model=13, pooling="mean"), 23, 3).eval(), ids(5, 11)
    twice = torch.cat([tokens, tokens], dim=1)
    torch.testing.assert_close(model(twice, ones(twice)), model(tokens, ones(tokens)))


def test_the_shape_is_told_in_words():
    assert BagOfWordsConfig().shape() == "sum of word vectors, d_model 100"
    assert BagOfWordsConfig(d_model=25, pooling="mean").shape() == "mean of word vectors, d_model 25"
