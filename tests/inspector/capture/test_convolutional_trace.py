"""Traces of convolutional models: the outputs of layers and the alignments of each, and the same numbers as without."""

import math

import numpy as np
import pytest

import heedful
from every_architecture import ENCODER_DECODERS, LANGUAGE_MODELS, generator, translator
from heedful.architectures.bytenet.settings import ByteNetConfig
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from subjects import TEXT

TRANSLATORS = {name: config for name, config in ENCODER_DECODERS.items() if isinstance(config, ConvolutionalConfig)}
GENERATORS = {name: config for name, config in LANGUAGE_MODELS.items() if isinstance(config, ConvolutionalConfig)}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_outputs_and_alignments_of_every_layer_are_recorded(name):
    found, config = heedful.trace(translator(name), TEXT), TRANSLATORS[name]
    assert max(found.checks.values()) < 1e-5
    source, target = len(found["src.in"].labels[0]), len(found["tgt.in"].labels[0])
    for side, length, layers in (("enc", source, config.encoder_layers), ("dec", target, config.decoder_layers)):
        for layer in range(layers):
            assert found[f"{side}.{layer}.hidden"].shape == (length, config.width)
        assert found[f"{side}.out"].shape == (length, config.d_model)
    for layer in range(config.decoder_layers):
        weights = found[f"dec.{layer}.cross.attn"]
        assert weights.shape == (1, target, source)
        np.testing.assert_allclose(weights.values.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", GENERATORS)
def test_outputs_of_a_language_model_are_recorded(name):
    found = heedful.trace(generator(name), TEXT)
    assert max(found.checks.values()) < 1e-5
    assert [key for key in found if key.endswith(".hidden")] == ["dec.0.hidden", "dec.1.hidden"]


@pytest.mark.parametrize(
    "name", [name for name, config in ENCODER_DECODERS.items() if isinstance(config, ByteNetConfig)]
)
def test_the_columns_of_a_bytenet_are_numbered_and_its_target_tokens_are_named(name):
    found, config = heedful.trace(translator(name), TEXT), ENCODER_DECODERS[name]
    assert max(found.checks.values()) < 1e-5
    target = found["tgt.tok"].labels[0]
    columns = math.ceil(config.target_ratio * len(found["src.tok"].labels[0]) + config.target_extra)
    for side, labels, layers in (
        ("enc", [str(column) for column in range(columns)], config.encoder_layers),
        ("dec", target, config.decoder_layers),
    ):
        for part in (*(f"{layer}.hidden" for layer in range(layers)), "out"):
            assert found[f"{side}.{part}"].values.shape == (len(labels), config.d_model)
            assert found[f"{side}.{part}"].labels[0] == labels
