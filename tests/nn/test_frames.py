"""Sound as frames: their number, and the convolutions of Whisper in front of them."""

import pytest
import torch
from torch import nn

from heedful.config.modalities import AudioConfig
from heedful.nn.frames import frame_embedding

RAW = AudioConfig(features="samples", hop=320, stem="linear")


def test_ten_seconds_are_500_frames_of_20_milliseconds():
    samples = torch.randn(10 * 16_000)
    assert RAW.frames(len(samples)) == RAW.tokens(len(samples)) == 500
    frames = samples.unflatten(0, (500, RAW.width))[None]
    vectors, real = frame_embedding(RAW, 7).embed(frames, torch.ones(1, 500, dtype=torch.bool))
    assert vectors.shape == (1, 500, 7)
    assert real.all()


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_the_convolutional_layer_halves_the_frames_rounded_up(count):
    config = AudioConfig(mels=5)
    layer = frame_embedding(config, 7)
    vectors, real = layer.embed(torch.randn(3, count, 5), torch.ones(3, count, dtype=torch.bool))
    assert vectors.shape == (3, (count + 1) // 2, 7)
    assert real.shape == (3, (count + 1) // 2)
    assert config.tokens(count * config.hop) == (count + 1) // 2


def test_the_convolutional_layer_equals_plain_convolutions():
    layer, frames = frame_embedding(AudioConfig(mels=5), 7), torch.randn(2, 11, 5)
    plain = nn.Sequential(layer.first, nn.GELU(), layer.second, nn.GELU())
    vectors, _ = layer.embed(frames, torch.ones(2, 11, dtype=torch.bool))
    torch.testing.assert_close(vectors, plain(frames.transpose(1, 2)).transpose(1, 2))


def test_a_clip_has_a_frame_however_short_it_is_and_is_padded_where_the_recipe_says_so():
    assert AudioConfig().frames(1) == 1
    assert AudioConfig(pad_seconds=30).frames(1) == 3000
