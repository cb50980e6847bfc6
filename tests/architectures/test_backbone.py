"""BERT: every token sees every token; segments; the transform of a masked language model."""

from functools import partial

import pytest
import torch

from children import SHAPES, VOCABULARY, ids, ones, shape, stirred
from heedful.architectures import EncoderOnly, MaskedLanguageModel, TextClassifier
from heedful.nn.embedding import Embedding

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
every_shape = pytest.mark.parametrize(("positions", "norm", "normalization", "kv_heads"), SHAPES)


def encoder(*given, **more) -> EncoderOnly:
    config = shape(*given, **more)
    return stirred(EncoderOnly(config, Embedding(VOCABULARY, config)))


@every_shape
def test_every_token_matters_to_every_token(positions, norm, normalization, kv_heads):
    built, tokens = encoder(positions, norm, normalization, kv_heads), ids(1, 7)
    want = built(tokens, ones(tokens), torch.zeros_like(tokens))[0]
    for place in range(7):
        other = tokens.clone()
        other[0, place] = (tokens[0, place] - 4) % (VOCABULARY - 5) + 5
        got = built(other, ones(other), torch.zeros_like(other))[0]
        assert ((got - want).abs().amax(1) > 1e-5).all()


def test_segments_matter_where_there_are_some():
    tokens, parts = ids(3, 7), torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 3)
    for segments, matter in ((0, False), (1, False), (2, True)):
        built = encoder("learned", "post", "layer", None, segments=segments)
        one, two = (built(tokens, ones(tokens), x) for x in (torch.zeros_like(parts), parts))
        assert torch.equal(one, two) != matter


def test_a_segment_is_a_vector_added_to_each_of_its_tokens():
    built, tokens = encoder("none", "pre", "layer", None, segments=3), ids(2, 5)
    parts = torch.tensor([[0, 1, 1, 2, 2], [2, 2, 0, 0, 1]])
    x = built.embedding(tokens)
    table = dict(built.named_parameters())["segments.table.weight"]
    assert torch.equal(built.segments(x, parts), x + table[parts])


def test_logits_of_a_masked_model_go_through_transform_and_tied_output():
    built = stirred(MaskedLanguageModel(shape("learned", "post", "layer", None, output_bias=True), 23, pairs=False))
    tokens = ids(3, 7)
    states = built.backbone(tokens, ones(tokens), torch.zeros_like(tokens)).double()
    transform = built.transform.double()
    x = states @ transform.dense.weight.T + transform.dense.bias
    x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    want = (x * transform.norm.weight + transform.norm.bias) @ built.backbone.embedding.weight.double().T
    built.transform.float()
    close(built(tokens, ones(tokens), torch.zeros_like(tokens)).double(), want + built.output.bias.double())
    assert built.next_sentence is None


def test_neighbours_are_told_from_the_first_state():
    built = stirred(MaskedLanguageModel(shape("learned", "post", "layer", None), 23, pairs=True))
    tokens = ids(3, 7)
    states = built.backbone(tokens, ones(tokens), torch.zeros_like(tokens))
    head = built.next_sentence
    assert head is not None
    pooler, output = head.pooler.dense, head.output
    want = (states[:, 0] @ pooler.weight.T + pooler.bias).tanh() @ output.weight.T + output.bias
    close(head(states, ones(tokens)), want)


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_the_first_and_the_last_token_matter_to_a_decision(family):
    built, tokens = stirred(TextClassifier(shape("learned", "pre", "layer", None, family=family), 23, 3)), ids(5, 7)
    decided = built(tokens, ones(tokens), torch.zeros_like(tokens))
    for place in (0, 6):
        other = tokens.clone()
        other[:, place] = (tokens[:, place] - 4) % (VOCABULARY - 5) + 5
        assert ((built(other, ones(other), torch.zeros_like(other)) - decided).abs().amax(1) > 1e-4).all()
