"""Where a recording holds speech: the network of silero-vad, the stretches between pauses, and digital silence."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from heedful.config.modalities import AudioConfig
from heedful.media import voice
from heedful.media.audio_reader import ArrayAudioReader
from heedful.media.voice import CHUNK, CONTEXT, speech_network, speech_probabilities, speech_stretches

RATE = 16_000
CONFIG = AudioConfig(rate=RATE)


def recording(*seconds_of: tuple[float, float]) -> ArrayAudioReader:
    """A recording of noise, in parts of so many seconds and of this loudness."""
    random = np.random.default_rng(1)
    parts = [level * random.normal(0, 1, round(seconds * RATE)) for seconds, level in seconds_of]
    return ArrayAudioReader(np.concatenate(parts).astype(np.float32), CONFIG)


def plain(samples: np.ndarray) -> np.ndarray:
    """The network once more, chunk by chunk, with numpy in float64."""
    weights = {name: value.astype(np.float64) for name, value in load_file(voice.network_weights()).items()}
    hidden, cell, found = np.zeros(128), np.zeros(128), []

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def convolved(x, name, stride):
        kernel, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        x = np.pad(x, ((0, 0), (1, 1)))
        places = range(0, x.shape[1] - 2, stride)
        return np.maximum(np.stack([(kernel * x[:, p : p + 3]).sum((1, 2)) + bias for p in places], axis=1), 0)

    samples = np.concatenate([np.zeros(CONTEXT), samples])
    for begin in range(0, len(samples) - CONTEXT, CHUNK):
        chunk = np.pad(samples[begin : begin + CONTEXT + CHUNK], (0, 64), mode="reflect")
        basis = weights["stft_conv.weight"][:, 0]
        spectrum = np.stack([basis @ chunk[p : p + 256] for p in range(0, 385, 128)], axis=1)
        x = np.sqrt(spectrum[:129] ** 2 + spectrum[129:] ** 2)
        for name, stride in (("conv1", 1), ("conv2", 2), ("conv3", 2), ("conv4", 1)):
            x = convolved(x, name, stride)
        gates = weights["lstm_cell.weight_ih"] @ x[:, 0] + weights["lstm_cell.bias_ih"]
        gates += weights["lstm_cell.weight_hh"] @ hidden + weights["lstm_cell.bias_hh"]
        i, f, g, o = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        out = weights["final_conv.weight"][0, :, 0] @ np.maximum(hidden, 0) + weights["final_conv.bias"]
        found.append(sigmoid(out)[0])
    return np.array(found)


def test_the_network_is_that_of_its_weights_chunk_by_chunk():
    samples = np.random.default_rng(3).normal(0, 0.1, 11 * CHUNK).astype(np.float32)
    samples[3 * CHUNK : 7 * CHUNK] += 0.4 * np.sin(np.arange(4 * CHUNK) / 20).astype(np.float32)
    pieces = [samples[: 4 * CHUNK], samples[4 * CHUNK :]]
    np.testing.assert_allclose(np.concatenate(list(speech_probabilities(pieces))), plain(samples), atol=1e-5)


def test_reading_the_network_leaves_the_random_generator_alone():
    speech_network.cache_clear()
    before = torch.random.get_rng_state()
    speech_network()
    assert torch.equal(torch.random.get_rng_state(), before)


def heard(monkeypatch, *runs: tuple[float, float]) -> None:
    """Let the network hear speech in the seconds between these."""

    def probabilities(pieces):
        count = -(-sum(map(len, pieces)) // CHUNK)
        seconds = np.arange(count) * CHUNK / RATE
        yield np.any([(seconds >= begin) & (seconds < end) for begin, end in runs], axis=0) * 0.9

    monkeypatch.setattr(voice, "speech_probabilities", probabilities)


def test_speech_is_joined_over_short_pauses_and_has_a_margin(monkeypatch):
    heard(monkeypatch, (20.0, 24.0), (25.5, 27.0), (40.0, 41.0), (50.0, 50.04))
    found = [(begin / RATE, end / RATE) for begin, end in speech_stretches(recording((60, 0.1)), network=True)]
    assert found == [pytest.approx((19.6, 27.4), abs=0.04), pytest.approx((39.6, 41.4), abs=0.04)]


def test_stretches_stay_in_the_recording(monkeypatch):
    heard(monkeypatch, (0.0, 1.0), (9.9, 10.1))
    first, *_, last = speech_stretches(recording((10, 0.1)), network=True)
    assert (first[0], last[1]) == (0, 10 * RATE)


@pytest.mark.parametrize("level", [0.0, 1e-5, 1e-3, 0.1])
def test_noise_is_not_speech(level):
    assert speech_stretches(recording((7, level)), network=True) == []


def test_without_the_network_digital_silence_alone_is_left_out():
    found = speech_stretches(recording((7, 0.0), (3, 0.1), (1.5, 0.0), (2, 0.1), (9, 0.0)), network=False)
    assert [(begin / RATE, end / RATE) for begin, end in found] == [pytest.approx((6.0, 14.5), abs=0.04)]
    assert speech_stretches(recording((7, 0.0)), network=False) == []
    whole = recording((7, 1e-6))
    assert speech_stretches(whole, network=False) == [(0, whole.length)]
