"""Recordings that are read piece by piece are what they are as a whole."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.modalities import AudioConfig
from heedful.errors import InputError
from heedful.media.audio import ChannelMixer, read_audio
from heedful.media.audio_reader import BLOCK, ArrayAudioReader, FileAudioReader, audio_reader

soundfile = pytest.importorskip("soundfile")

CONFIG = AudioConfig(rate=8000)
RATES = [8000, 16_000, 44_100, 11_025, 7993]
KINDS = {"wav": "FLOAT", "flac": "PCM_24", "ogg": "VORBIS", "mp3": "MPEG_LAYER_III"}


def sound(rate, seconds=1.3, channels=2):
    times = np.arange(round(rate * seconds)) / rate
    tones = [
        0.3 * np.sin(2 * np.pi * f * times) + 0.1 * np.cos(2 * np.pi * 3 * f * times) for f in (211, 307)[:channels]
    ]
    return np.stack(tones, axis=1).astype(np.float32)


@pytest.mark.parametrize(
    ("channels", "message"),
    [(1, "only 1 channel, but audio.channel = 3; leave audio.channel out"), (2, "= 3; choose one from 1 to 2")],
)
def test_a_channel_that_a_recording_does_not_have_is_refused(channels, message):
    with pytest.raises(InputError, match=message):
        ChannelMixer(3).mix(sound(8000, channels=channels))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("sounds")
    for rate in RATES:
        soundfile.write(made / f"{rate}.wav", sound(rate), rate, subtype="FLOAT")
    for ending, subtype in KINDS.items():
        soundfile.write(made / f"tone.{ending}", sound(16_000), 16_000, subtype=subtype)
    return made


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("rate", RATES)
def test_pieces_of_any_rate_are_those_of_the_whole(folder, rate, data):
    path = folder / f"{rate}.wav"
    whole = read_audio(path.read_bytes(), CONFIG)
    recording = FileAudioReader(path, CONFIG)
    assert recording.length == len(whole)
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole) + 500))
    if begin < min(end, len(whole)):
        np.testing.assert_allclose(recording.read(begin, end), whole[begin:end], atol=1e-6)


@pytest.mark.parametrize("ending", KINDS)
def test_pieces_of_any_kind_of_file_are_those_of_the_whole(folder, ending):
    path = folder / f"tone.{ending}"
    whole = read_audio(path.read_bytes(), CONFIG)
    for source in (path, str(path), path.read_bytes()):
        recording = audio_reader(source, CONFIG)
        assert recording.length == len(whole)
        assert recording.seconds == pytest.approx(len(whole) / 8000)
        cuts = [0, 1, 4999, 5003, recording.length]
        pieces = [recording.read(a, b) for a, b in pairwise(cuts)]
        np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-5)


def test_what_is_kept_is_no_more_than_what_was_asked_for(folder):
    soundfile.write(folder / "long.flac", sound(44_100, seconds=31), 44_100)
    recording = FileAudioReader(folder / "long.flac", CONFIG)
    whole = read_audio((folder / "long.flac").read_bytes(), AudioConfig(rate=8000, max_seconds=32.0))
    for begin in (0, 8000, 12_007, 12_007, 100_003, 240_000, 5003):
        np.testing.assert_allclose(recording.read(begin, begin + 4001), whole[begin : begin + 4001], atol=1e-6)
        assert len(recording._buffer) <= 4001 * 44_100 / 8000 + 5 * 441 + BLOCK


@pytest.mark.parametrize("ending", KINDS)
def test_a_file_that_was_read_to_its_end_is_read_again_from_its_beginning(folder, ending):
    recording = FileAudioReader(folder / f"tone.{ending}", CONFIG)
    before = recording.read(0, recording.length)
    recording.check()
    np.testing.assert_array_equal(recording.read(0, recording.length), before)


def test_a_file_that_was_checked_is_closed(folder):
    recording = FileAudioReader(folder / "tone.wav", CONFIG)
    recording.read(0, 5)
    sound = recording._file
    recording.check()
    assert sound.closed
    assert (recording._file, len(recording._buffer)) == (None, 0)


def test_a_file_that_cannot_be_opened_is_named(folder, monkeypatch):
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(InputError, match=r"tone.wav: it cannot be read \(Permission denied\)"):
        FileAudioReader(folder / "tone.wav", CONFIG)


def test_what_is_wrong_with_a_file_is_found_by_reading_it_to_its_end(folder, tmp_path):
    noise = np.random.default_rng(3).normal(0, 0.1, 3 * BLOCK).astype(np.float32)
    soundfile.write(tmp_path / "whole.flac", noise, 8000)
    (tmp_path / "cut.flac").write_bytes((tmp_path / "whole.flac").read_bytes()[:-1000])
    noise[-5:] = np.nan
    soundfile.write(tmp_path / "odd.wav", noise, 8000, subtype="FLOAT")
    for name, words in {"cut.flac": "cut off|damaged", "odd.wav": "are not finite"}.items():
        recording = FileAudioReader(tmp_path / name, CONFIG)
        with pytest.raises(InputError, match=rf"{name}: .*({words})"):
            recording.check()


def test_arrays_and_tensors_are_taken_as_they_are():
    samples = sound(8000, channels=1)[:, 0]
    for given_ in (samples, samples.astype(np.float64), torch.from_numpy(samples), samples[::-1][::-1]):
        recording = audio_reader(given_, CONFIG)
        assert isinstance(recording, ArrayAudioReader)
        np.testing.assert_array_equal(recording.read(17, 53), samples[17:53])
        assert recording.length == len(samples)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (
            np.zeros((5, 2), np.float32),
            r"type float32 and shape \(5, 2\) is not audio; give samples of one channel",
        ),
        (np.zeros(5, np.int64), r"an array of type int64 .* is not audio; give samples .* from -1\.0 to 1\.0"),
        (np.array([0.1, -40_000], np.float32), "its samples reach 40,000, but audio ranges from -1 to 1"),
        (np.zeros(0, np.float32), "it has no samples"),
        (np.array([0.1, np.nan], np.float32), "1 of its 2 samples are not finite"),
        (17, "int is not audio"),
        ("absent.wav", r"absent\.wav: no such file"),
        (b"no audio at all", "the audio: it is not audio"),
    ],
)
def test_what_is_no_recording_is_refused(given_, words):
    with pytest.raises(InputError, match=words):
        audio_reader(given_, CONFIG)


def test_damaged_files_are_named(folder, tmp_path):
    (tmp_path / "text.wav").write_text("this is no sound")
    with pytest.raises(InputError, match=r"text\.wav: it is not audio, is damaged, or is in an unsupported format"):
        audio_reader(tmp_path / "text.wav", CONFIG)
    samples = sound(8000)
    samples[5003] = np.inf
    soundfile.write(tmp_path / "infinite.wav", samples, 8000, subtype="FLOAT")
    recording = audio_reader(tmp_path / "infinite.wav", CONFIG)
    assert len(recording.read(0, 5000)) == 5000
    with pytest.raises(InputError, match=r"infinite\.wav: 1 of its .* samples are not finite"):
        recording.read(5000, 5100)
    soundfile.write(tmp_path / "empty.wav", samples[:0], 8000)
    with pytest.raises(InputError, match=r"empty\.wav: it has no samples"):
        audio_reader(tmp_path / "empty.wav", CONFIG)


def test_a_wav_that_is_cut_off_is_refused_and_not_read_as_a_shorter_one(folder, tmp_path):
    soundfile.write(tmp_path / "whole.wav", sound(8000), 8000)
    content = (tmp_path / "whole.wav").read_bytes()
    (tmp_path / "cut.wav").write_bytes(content[:-1001])
    for source in (tmp_path / "cut.wav", content[:-1001]):
        with pytest.raises(InputError, match=f"it has {len(content) - 1001:,} of {len(content):,} bytes"):
            audio_reader(source, CONFIG)
