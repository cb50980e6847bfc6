"""Sound files of every kind: read as samples of one channel, or refused with a reason."""

from contextlib import suppress
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import soundfile

from damage import damaged
from heedful.config.modalities import AudioConfig
from heedful.data.media.sounds import UNTOLD, read_sound
from heedful.errors import InputError

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
    samples = read_sound(saved(TONE, kind, subtype), CONFIG)
    assert samples.dtype == np.float32
    assert len(samples) == len(TONE)
    assert np.abs(samples - TONE).max() <= off


@pytest.mark.parametrize("kind", ["OGG", "MP3"])
def test_a_compressed_file_has_about_the_samples_that_were_saved(kind):
    samples = read_sound(saved(np.tile(TONE, 3), kind), CONFIG)
    assert np.corrcoef(samples[: 3 * len(TONE)], np.tile(TONE, 3))[0, 1] > 0.95


def test_channels_are_averaged():
    samples = read_sound(saved(np.stack([TONE, 0.25 * TONE], axis=1), subtype="FLOAT"), CONFIG)
    np.testing.assert_allclose(samples, 0.625 * TONE, atol=1e-6)


def test_another_rate_is_resampled():
    fast = (0.5 * np.sin(2 * np.pi * 440 * np.arange(4410) / 44_100)).astype(np.float32)
    samples = read_sound(saved(fast, rate=44_100), CONFIG)
    assert len(samples) == 800
    assert np.abs(samples - TONE[:800])[100:-100].max() < 1e-3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; take it out, or save it again"),
        (b"A text with the name of a sound.\n" * 9, "it is no sound, damaged"),
        (saved(TONE)[:30], "it is cut off: 30 of 4,042 bytes are there"),
        (saved(TONE, "FLAC")[:900], r"it is no sound, damaged|cut off"),
        (saved(TONE, "AIFF")[:900], r"it is cut off: 900 of 4,0\d\d bytes are there"),
        (saved(TONE, "AU")[:900], r"it is cut off: 900 of 4,0\d\d bytes are there"),
        (saved(TONE, "OGG")[:-900], "it is cut off: its last page is not whole"),
        (saved(TONE, "OGG")[:-1], "it is cut off: its last page is not whole"),
        (saved(TONE, rate=2_000_000_011), "it has 2,000,000,011 samples a second, more than 768,000"),
        (saved(TONE[:0]), "it has no samples"),
        (saved(np.array([0.1, np.nan, 0.2, np.inf]), subtype="FLOAT"), "2 of its 4 samples are no finite numbers"),
        (saved(np.zeros(3 * 3600 * 10), "FLAC", rate=10), "10,800.0 seconds long, more than max_seconds = 2.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # the bytes hold the second in which they were made
)
def test_what_cannot_be_read_is_refused_with_a_reason(content, message):
    with pytest.raises(InputError, match=message):
        read_sound(content, CONFIG)


def test_a_file_that_does_not_tell_its_length_is_read_to_its_end():
    content = untold(saved(TONE, "FLAC"))
    with soundfile.SoundFile(BytesIO(content)) as sound:
        assert sound.frames == UNTOLD
    np.testing.assert_array_equal(read_sound(content, CONFIG), read_sound(saved(TONE, "FLAC"), CONFIG))
    with pytest.raises(InputError, match=r"0\.2 seconds long, more than max_seconds = 0\.1"):
        read_sound(content, replace(CONFIG, max_seconds=0.1))


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAV", "ULAW"), ("FLAC", None)])
def test_a_damaged_file_is_read_or_refused(kind, subtype):
    for content in damaged(saved(TONE, kind, subtype), 200):
        with suppress(InputError):
            assert np.isfinite(read_sound(content, CONFIG)).all()
