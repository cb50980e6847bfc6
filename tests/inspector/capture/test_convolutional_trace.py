"""Traces of convolutional models: the outputs of layers and the alignments of each, and the same numbers as without."""

import numpy as np
import pytest

import heedful
from every_architecture import ENCODER_DECODERS, LANGUAGE_MODELS, encoder_decoder, language_model
from heedful.config.convolutional import ConvolutionalConfig
from heedful.config.schema import DecodeConfig, GenerateConfig
from heedful.decode.generator import Generator
from heedful.decode.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from subjects import TEXT, TOKENIZER

TRANSLATORS = {name: config for name, config in ENCODER_DECODERS.items() if isinstance(config, ConvolutionalConfig)}
GENERATORS = {name: config for name, config in LANGUAGE_MODELS.items() if isinstance(config, ConvolutionalConfig)}


def translator(name: str) -> Translator:
    pair = TokenizerPair(TOKENIZER, TOKENIZER)
    return Translator(encoder_decoder(name, len(TOKENIZER)), pair, DecodeConfig(beam=3, max_extra=5))


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
    built = language_model(name, len(TOKENIZER))
    found = heedful.trace(Generator(built, TOKENIZER, GenerateConfig(max_tokens=7)), TEXT)
    assert max(found.checks.values()) < 1e-5
    assert [key for key in found if key.endswith(".hidden")] == ["dec.0.hidden", "dec.1.hidden"]
