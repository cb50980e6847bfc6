"""Properties of every architecture besides those of `verify`: what is seen, and runs that resume."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

import heedful
from children import ids, ones
from every_architecture import (
    ENCODER_DECODERS,
    ENCODERS,
    LANGUAGE_MODELS,
    VOCABULARY,
    encoder_decoder,
    language_model,
)
from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.config.schema import TextModelConfig
from heedful.config.validate import OPTIONS
from heedful.nn.masks import AttentionMask
from heedful.training import loop
from interrupted import stop_after, train
from reversal import fingerprint, recipe, write_pairs

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
every_encoder_decoder = pytest.mark.parametrize("name", ENCODER_DECODERS)
every_language_model = pytest.mark.parametrize("name", LANGUAGE_MODELS)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder


def rows_of(*lengths: int) -> list[Tensor]:
    return [ids(1, length)[0] for length in lengths]


def other_than(tokens: Tensor) -> Tensor:
    return (tokens - 4) % (VOCABULARY - 5) + 5


def test_every_architecture_that_comes_with_heedful_is_tested():
    configs = [*ENCODER_DECODERS.values(), *LANGUAGE_MODELS.values(), *ENCODERS.values()]
    assert {type(config) for config in configs} >= {
        kind for kind in OPTIONS.values() if issubclass(kind, TextModelConfig) and kind is not DualEncoderConfig
    }  # a dual encoder reads images, too: tests/architectures/dual_encoder/test_dual_encoder.py


@every_encoder_decoder
def test_a_target_token_knows_no_later_one(name):
    built, source, target = encoder_decoder(name), ids(3, 7), ids(3, 11)
    other = target.clone()
    other[:, 5:] = other_than(target[:, 5:])
    first, second = (built(source, ones(source), x, ones(x)) for x in (target, other))
    close(first[:, :5], second[:, :5], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)


@every_encoder_decoder
def test_every_source_token_matters_to_a_target(name):
    built, source, target = encoder_decoder(name), ids(1, 5), ids(1, 3)
    want = built(source, ones(source), target, ones(target))
    for place in range(5):
        other = source.clone()
        other[0, place] = other_than(source[0, place])
        assert not torch.equal(built(other, ones(other), target, ones(target)), want)


@pytest.mark.sampled(3)
@every_encoder_decoder
def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(name, text, tmp_path, monkeypatch):
    settings = replace(recipe(text, train={"accumulate": 2}), model=ENCODER_DECODERS[name])
    with torch.enable_grad():
        assert train(settings, tmp_path / "whole") == loop.Outcome(19, 0)
        with monkeypatch.context() as patch:
            stop_after(8, patch)
            assert train(settings, tmp_path / "parts") == loop.Outcome(8, 143)
        assert train(settings, tmp_path / "parts") == loop.Outcome(19, 0)
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    translator = heedful.load(tmp_path / "whole", task="translation")
    lines = (text / "valid.src").read_text().splitlines()
    for beam in (1, 3):
        assert translator.translate(lines, beam=beam) == [translator.translate(line, beam=beam) for line in lines]


@every_language_model
def test_a_token_of_a_text_knows_no_later_one(name):
    built, tokens = language_model(name), ids(3, 11)
    other = tokens.clone()
    other[:, 5:] = other_than(tokens[:, 5:])
    first, second = (built(x, ones(x)) for x in (tokens, other))
    close(first[:, :5], second[:, :5], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)


@every_language_model
def test_documents_in_one_sequence_are_each_alone(name):
    built, rows = language_model(name), rows_of(5, 1, 7, 3)
    packed = torch.cat([*rows, torch.zeros(2, dtype=torch.long)])[None]
    lengths = [len(row) for row in rows] + [2]
    documents = torch.repeat_interleave(torch.tensor([2, 3, 7, 8, 11]), torch.tensor(lengths))[None]
    mask = AttentionMask(packed > 0, packed.size(1), causal=True)
    got = built.hidden(packed, mask.within(documents))[0].split(lengths)[:-1]
    for part, alone in zip(got, rows, strict=True):
        close(part, built.hidden(alone[None], AttentionMask(ones(alone[None]), len(alone), causal=True))[0])
    assert not torch.allclose(built.hidden(packed, mask)[0, 5:16], torch.cat(got)[5:], atol=1e-3)
