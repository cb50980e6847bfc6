"""The log-mel spectrum against a plain computation in float64 and against Whisper's in transformers; its masks."""

import numpy as np
import pytest
import torch
from transformers import WhisperFeatureExtractor

from heedful.config.modalities import AudioConfig
from heedful.media.log_mel import log_mel, masked, mel_bands
from heedful.random_numbers import KeyedGenerator

SAMPLES = torch.from_numpy(np.random.default_rng(1).normal(scale=0.1, size=16_001).astype(np.float32))
CONFIG = AudioConfig()


def plain(samples: np.ndarray, config: AudioConfig) -> np.ndarray:
    """The same by numpy: a Fourier transform for each frame, mirrored at the ends, and a loop over the bands."""
    half = config.window // 2
    padded = np.pad(samples.astype(np.float64), half, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(config.window) / config.window)
    begins = config.hop * np.arange(len(samples) // config.hop)
    power = np.abs(np.fft.rfft(padded[begins[:, None] + np.arange(config.window)] * window)) ** 2
    bands = np.log10(np.maximum(power @ mel_bands(config.mels, config.window, config.rate).numpy().T, 1e-10))
    return (np.maximum(bands, bands.max() - 8) + 4) / 4


@pytest.mark.parametrize("config", [CONFIG, AudioConfig(rate=8000, window=256, hop=100, mels=41)])
def test_it_equals_a_plain_computation(config):
    np.testing.assert_allclose(log_mel(SAMPLES, config).numpy(), plain(SAMPLES.numpy(), config), atol=1e-6)


def test_the_mel_bands_are_those_of_whisper():
    theirs = WhisperFeatureExtractor().mel_filters.T
    np.testing.assert_allclose(mel_bands(80, 400, 16_000).numpy(), theirs, atol=1e-9)


def test_it_is_that_of_whisper():
    padded = np.pad(SAMPLES.numpy(), (0, 480_000 - len(SAMPLES)))
    theirs = WhisperFeatureExtractor()._np_extract_fbank_features(padded[None], "cpu")[0].T  # by numpy, in float64
    own = log_mel(SAMPLES, AudioConfig(pad_seconds=30))
    assert own.shape == theirs.shape == (3000, 80)
    assert np.abs(own.numpy() - theirs).max() < 1e-6


@pytest.mark.parametrize("count", [1, 159, 160, 161, 201, 320])
def test_a_short_clip_has_a_frame_for_each_whole_hop_and_at_least_one(count):
    spectrum = log_mel(SAMPLES[:count], CONFIG)
    assert spectrum.shape == (max(1, count // 160), 80)
    assert spectrum.isfinite().all()


def test_silence_is_finite():
    assert log_mel(torch.zeros(999), CONFIG).unique().tolist() == [-1.5]


def test_masks_cover_spans_of_frames_and_of_bands_and_depend_on_their_key_alone():
    spectrum = log_mel(SAMPLES, CONFIG)
    config = AudioConfig(time_masks=2, frequency_masks=1)
    spectra = [masked(spectrum, config, KeyedGenerator(1, number)) for number in range(20)]
    assert all(
        torch.equal(one, masked(spectrum, config, KeyedGenerator(1, number))) for number, one in enumerate(spectra)
    )
    assert len({one.numpy().tobytes() for one in spectra}) > 10
    for one in spectra:
        changed = one != spectrum
        frames, bands = changed.all(1).sum(), changed.all(0).sum()
        assert frames <= 2 * 0.2 * len(spectrum)
        assert bands <= 0.2 * 80
        assert changed.sum() == frames * 80 + bands * len(spectrum) - frames * bands
    assert torch.equal(masked(spectrum, CONFIG, KeyedGenerator(1)), spectrum)
