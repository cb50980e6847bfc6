"""ConvS2S as a whole: where its gradients go, its size and its limits."""

from dataclasses import replace

import pytest
import torch

from children import ids, ones, padded
from heedful.architectures import SourceToTarget, TextClassifier
from heedful.architectures.backbone import model_class
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.parameters import count_parameters

CONFIG = ConvolutionalConfig(d_model=14, channels=11, kernel_size=3, max_positions=13, tie="none", output_bias=True)


def built(**changes: object) -> SourceToTarget:
    config = replace(CONFIG, **changes)
    return model_class(config)(config, 23, 29)


def test_every_parameter_gets_a_gradient():
    model, tokens = built(), [ids(1, n)[0] for n in (7, 3, 5)]
    model(*padded(tokens, "right"), *padded(tokens, "right")).square().sum().backward()
    idle = [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert idle == []


def test_a_source_word_reaches_the_decoder_beside_the_encoder():
    model, tokens = built(), ids(1, 5)
    for parameter in model.encoder.parameters():
        torch.nn.init.zeros_(parameter)
    table = model.encoder.get_parameter("positions.table.weight")
    logits = model(tokens, ones(tokens), tokens, ones(tokens))
    with torch.no_grad():
        table[2] += 1.0
    assert not torch.allclose(model(tokens, ones(tokens), tokens, ones(tokens)), logits)


def test_a_text_has_no_more_tokens_than_there_are_positions():
    model = built()
    assert model.max_positions() == 13
    with pytest.raises(IndexError, match=r"14 tokens, but model\.max_positions is 13"):
        model.start(ids(2, 14), ones(ids(2, 14)))
    free = built(positions="none").eval()
    assert free.max_positions() is None
    assert free.start(ids(2, 14), ones(ids(2, 14))).step(ids(1, 2)[0]).shape == (2, 29)


def test_parameters_are_counted_by_kind():
    counts = count_parameters(built(encoder_layers=2, decoder_layers=3))
    maps = 2 * 2 * 14 * 11  # in and out of both stacks
    lengths = 2 * (11 + 14) + 5 * 22
    assert counts.weights == {
        "embeddings": 14 * (23 + 29),
        "positions": 2 * 13 * 14,
        "convolutions": maps + 5 * 3 * 11 * 22 + lengths,
        "cross-attention": 3 * (2 * 14 * 11 + 14 + 11),
        "output": 14 * 29,
    }


def test_ends_are_tied_as_the_recipe_says():
    config = replace(CONFIG, tie="all")
    model = model_class(config)(config, 23, 23)
    assert model.output.weight is model.source_embedding.weight is model.target_embedding.weight


def test_the_shape_is_told_in_words():
    assert CONFIG.shape() == "gated convolutions, 4+3 layers, kernel size 3, d_model 14, 11 channels"
    assert replace(CONFIG, family="decoder", decoder_layers=1, channels=None).shape() == (
        "gated convolutions, 1 layer, kernel size 3, d_model 14, 14 channels"
    )


def test_a_decoder_classifies_by_its_last_token():
    config = replace(CONFIG, family="decoder", positions="none")
    model, tokens = TextClassifier(config, 23, 3).eval(), ids(2, 11)
    states = model.backbone(tokens, ones(tokens))
    torch.testing.assert_close(model(tokens, ones(tokens)), model.output(states[:, -1]))
