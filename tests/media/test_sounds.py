"""Sound files of every kind: read as samples of one channel, or refused with a reason."""

from contextlib import suppress
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import soundfile

from damage import damaged
from heedful.config.modalities import AudioConfig
from heedful.errors import InputError
from heedful.media.audio import UNKNOWN_LENGTH, from_samples, read_audio
from heedful.media.audio_reader import FileAudioReader

RATE = 8000
CONFIG = AudioConfig(rate=RATE, max_seconds=2)
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(1999) / RATE)).astype(np.float32)


def saved(samples: np.ndarray, kind: str = "WAV", subtype: str | None = None, rate: int = RATE) -> bytes:
    stream = BytesIO()
    soundfile.write(stream, samples, rate, format=kind, subtype=subtype)
    return stream.getvalue()


def untold(content: bytes) -> bytes:
    """FLAC as an encoder writes it into a pipe: the 36 bits for the number of samples are 0."""
    return content[:21] + bytes([content[21] & 0xF0]) + bytes(4) + content[26:]


@pytest.mark.parametrize(
    ("kind", "subtype", "off"),
    [
        ("WAV", "PCM_16", 1e-4),
        ("WAV", "PCM_U8", 1e-2),
        ("WAV", "PCM_24", 1e-6),
        ("WAV", "FLOAT", 0),
        ("WAV", "ULAW", 2e-2),
        ("WAV", "ALAW", 2e-2),
        ("FLAC", "PCM_16", 1e-4),
        ("AIFF", "PCM_16", 1e-4),
    ],
)
def test_a_file_has_the_samples_that_were_saved(kind, subtype, off):
    samples = read_audio(saved(TONE, kind, subtype), CONFIG)
    assert samples.dtype == np.float32
    assert len(samples) == len(TONE)
    assert np.abs(samples - TONE).max() <= off


@pytest.mark.parametrize("kind", ["OGG", "MP3"])
def test_a_compressed_file_has_about_the_samples_that_were_saved(kind):
    samples = read_audio(saved(np.tile(TONE, 3), kind), CONFIG)
    assert np.corrcoef(samples[: 3 * len(TONE)], np.tile(TONE, 3))[0, 1] > 0.95


def test_channels_are_averaged():
    samples = read_audio(saved(np.stack([TONE, 0.25 * TONE], axis=1), subtype="FLOAT"), CONFIG)
    np.testing.assert_allclose(samples, 0.625 * TONE, atol=1e-6)


def test_another_rate_is_resampled():
    fast = (0.5 * np.sin(2 * np.pi * 440 * np.arange(4410) / 44_100)).astype(np.float32)
    samples = read_audio(saved(fast, rate=44_100), CONFIG)
    assert len(samples) == 800
    assert np.abs(samples - TONE[:800])[100:-100].max() < 1e-3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; remove it, or save it again"),
        (b"A text with the name of an audio file.\n" * 9, "it is not audio, is damaged"),
        (saved(TONE)[:30], "it is cut off: it has 30 of 4,042 bytes"),
        (saved(TONE, "FLAC")[:900], r"it is not audio, is damaged|cut off"),
        (saved(TONE, "AIFF")[:900], r"it is cut off: it has 900 of 4,0\d\d bytes"),
        (saved(TONE, "AU")[:900], r"it is cut off: it has 900 of 4,0\d\d bytes"),
        (saved(TONE, "OGG")[:-900], "it is cut off: its last page is incomplete"),
        (saved(TONE, "OGG")[:-1], "it is cut off: its last page is incomplete"),
        (
            saved(TONE, rate=2_000_000_011),
            "its sampling rate is 2,000,000,011 Hz, which is impossible: the file is damaged",
        ),
        (saved(TONE[:0]), "it has no samples"),
        (saved(np.array([0.1, np.nan, 0.2, np.inf]), subtype="FLOAT"), "2 of its 4 samples are not finite"),
        (saved(np.zeros(3 * 3600 * 10), "FLAC", rate=10), "10,800.0 seconds long, more than max_seconds = 2.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # the bytes hold the second in which they were made
)
def test_what_cannot_be_read_is_refused_with_a_reason(content, message):
    with pytest.raises(InputError, match=message):
        read_audio(content, CONFIG)


def test_a_file_that_does_not_tell_its_length_is_read_to_its_end():
    content = untold(saved(TONE, "FLAC"))
    with soundfile.SoundFile(BytesIO(content)) as sound:
        assert sound.frames == UNKNOWN_LENGTH
    np.testing.assert_array_equal(read_audio(content, CONFIG), read_audio(saved(TONE, "FLAC"), CONFIG))
    with pytest.raises(InputError, match=r"0\.2 seconds long, more than max_seconds = 0\.1"):
        read_audio(content, replace(CONFIG, max_seconds=0.1))


def streamed(content: bytes, riff: int, data: int) -> bytes:
    """A WAV file as a recorder writes it into a pipe: with these numbers where its bytes are not counted yet."""
    order = "little" if content[:4] == b"RIFF" else "big"
    place = content.index(b"data") + 4
    header = content[:4] + riff.to_bytes(4, order) + content[8:place] + data.to_bytes(4, order)
    return header + content[place + 4 :]


STREAMS = {"zero": (0, 0), "all ones": (2**32 - 1, 2**32 - 1), "no data": (36, 0), "sox": (2**31 - 1, 2**31 - 37)}


@pytest.mark.parametrize("source", ["bytes", "file"])
@pytest.mark.parametrize("sizes", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize(
    ("subtype", "endian", "channels"),
    [("PCM_16", None, 1), ("PCM_24", None, 2), ("FLOAT", None, 3), ("PCM_U8", None, 1), ("PCM_16", "BIG", 2)],
)
def test_a_wav_file_that_was_streamed_is_read_to_its_end(subtype, endian, channels, sizes, source, tmp_path):
    samples = np.stack([TONE[1:] * (1 + channel) / 4 for channel in range(channels)], axis=1)
    stream = BytesIO()
    soundfile.write(stream, samples, RATE, format="WAV", subtype=subtype, endian=endian)
    content = streamed(stream.getvalue(), *sizes)
    want = read_audio(stream.getvalue(), CONFIG)
    assert len(want) == len(TONE[1:])
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    if source == "bytes":
        np.testing.assert_array_equal(read_audio(content, CONFIG), want)
    else:
        recording = FileAudioReader(path, CONFIG)
        np.testing.assert_array_equal(recording.read(0, recording.length), want)


def test_an_au_file_that_was_streamed_is_read_to_its_end():
    content = saved(TONE, "AU")
    for size in (0, 2**32 - 1):
        cut = content[:8] + size.to_bytes(4, "big") + content[12:]
        np.testing.assert_array_equal(read_audio(cut, CONFIG), read_audio(content, CONFIG))


def test_a_wav_file_without_samples_has_none_whatever_follows():
    empty = saved(TONE[:0])
    for content in (empty, empty + b"LIST" + (4).to_bytes(4, "little") + b"INFO"):
        with pytest.raises(InputError, match="it has no samples"):
            read_audio(content, CONFIG)


@pytest.mark.parametrize("noise", [0, 1e-4])
@pytest.mark.parametrize("channels", [2, 4])
def test_channels_that_cancel_are_refused_and_one_can_be_chosen(channels, noise, tmp_path):
    signs = np.tile([1, -1], channels // 2)
    hiss = np.random.default_rng(3).normal(0, noise, (len(TONE), channels))
    content = saved(TONE[:, None] * signs + hiss, subtype="FLOAT")
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"its channels cancel each other: their mean is .*; select one, with --chann"):
        read_audio(content, CONFIG)
    with pytest.raises(InputError, match=rf"{path}: its channels cancel each other"):
        FileAudioReader(path, CONFIG).check()
    for channel in range(channels):
        chosen = replace(CONFIG, channel=channel + 1)
        want = (TONE * signs[channel] + hiss[:, channel]).astype(np.float32)
        np.testing.assert_allclose(read_audio(content, chosen), want, atol=1e-6)
        recording = FileAudioReader(path, chosen)
        np.testing.assert_allclose(recording.read(0, recording.length), want, atol=1e-6)
    with pytest.raises(InputError, match=f"it has {channels} channels, but audio.channel = 5"):
        read_audio(content, replace(CONFIG, channel=5))


def test_silent_and_different_channels_do_not_cancel():
    for other in (np.zeros_like(TONE), 0.9 * -TONE, np.roll(TONE, 3)):
        assert len(read_audio(saved(np.stack([TONE, other], axis=1)), CONFIG)) == len(TONE)
    assert not read_audio(saved(np.zeros((7, 2))), CONFIG).any()


@pytest.mark.parametrize("scale", [9, 127, 32_767, 2.0**31])
def test_samples_far_beyond_1_are_refused(scale, tmp_path):
    content = saved(TONE * 2 * scale, subtype="FLOAT")
    with pytest.raises(InputError, match=r"its samples reach .*, but audio ranges from -1 to 1; divide them by"):
        read_audio(content, CONFIG)
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.wav: its samples reach"):
        FileAudioReader(tmp_path / "a.wav", CONFIG).check()
    assert np.abs(read_audio(saved(TONE * 4, subtype="FLOAT"), CONFIG)).max() == pytest.approx(2, abs=1e-3)


@pytest.mark.parametrize(("kind", "scale"), [("int16", 32_767), ("int32", 2**31 - 1), ("uint8", 127)])
def test_samples_of_integers_in_memory_are_scaled(kind, scale):
    values = np.round(TONE * scale + (128 if kind == "uint8" else 0)).astype(kind)
    np.testing.assert_allclose(from_samples(values, CONFIG), TONE, atol=1.5 / min(scale, 2**15))


@pytest.mark.parametrize(
    ("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("FLAC", None), ("AIFF", None), ("OGG", None)]
)
def test_what_is_there_of_a_file_that_is_cut_off_is_read_if_that_is_asked_for(kind, subtype, tmp_path):
    noise = np.random.default_rng(3).normal(0, 0.1, 3 * RATE).astype(np.float32)
    config = replace(CONFIG, max_seconds=9)
    whole, content = read_audio(saved(noise, kind, subtype), config), saved(noise, kind, subtype)
    cut = content[: len(content) * 3 // 4]
    with pytest.raises(InputError, match=r"cut off|damaged"):
        read_audio(cut, config)
    found = read_audio(cut, config, truncated=True)
    assert 0.4 * len(whole) < len(found) < 0.8 * len(whole)
    np.testing.assert_allclose(found[:-2000], whole[: len(found) - 2000], atol=1e-5)
    path = tmp_path / "cut"
    path.write_bytes(cut)
    recording = FileAudioReader(path, config, truncated=True)
    recording.check()
    np.testing.assert_array_equal(recording.read(0, recording.length), found)


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAV", "ULAW"), ("FLAC", None)])
def test_a_damaged_file_is_read_or_refused(kind, subtype):
    for content in damaged(saved(TONE, kind, subtype), 200):
        with suppress(InputError):
            assert np.isfinite(read_audio(content, CONFIG)).all()
