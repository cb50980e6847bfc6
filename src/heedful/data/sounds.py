"""Sound from files: WAV, FLAC, Ogg and MP3 as samples of one channel; what cannot be read has a clear error."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Float32

from heedful.config.modalities import AudioConfig
from heedful.data.resampling import Samples, resampled
from heedful.errors import InputError

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au")

FASTEST = 768_000  # samples a second: more are a damaged header
STREAMED = 2**31 - 2**16  # bytes of a WAV file; more stand in files that were written before their length was known


def read_sound(content: bytes, config: AudioConfig) -> Samples:
    """Read the bytes of a sound file as samples of one channel at the rate of the settings, mostly from -1 to 1.

    Channels are averaged.

    Raises:
        InputError: The bytes are no sound, cut off, damaged, without samples or with some that are no numbers, or
            longer than `max_seconds`.
    """
    samples, rate = read_channels(content, config.max_seconds)
    return checked(resampled(checked(samples.mean(axis=1)), rate, config.rate))


def from_samples(values: np.ndarray, config: AudioConfig) -> Samples:
    """Check samples in memory, of one channel at the rate of the settings; return them as float32.

    Raises:
        InputError: The array has another shape or no fractions, or is what `read_sound` refuses in a file.
    """
    if values.ndim != 1 or values.dtype.kind != "f":
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is no sound; give samples from -1.0 to 1.0 of "
            f"one channel, {config.rate:,} a second, and several sounds in a list"
        )
    check_length(len(values) / config.rate, config.max_seconds)
    return checked(values.astype(np.float32))


def read_channels(content: bytes, most: float) -> tuple[Float32[np.ndarray, "N C"], int]:
    """Read all channels of a sound file (N C), and its samples a second; at most so many seconds.

    Raises:
        InputError: As for `read_sound`.
    """
    with opened(content) as sound:
        check_length(sound.frames / sound.samplerate, most)
        samples = sound.read(sound.frames, dtype="float32", always_2d=True)  # GSM cannot tell how many follow
        if len(samples) < sound.frames:
            raise InputError(f"it is cut off: {len(samples):,} of {sound.frames:,} samples are there")
        return samples, sound.samplerate


@contextmanager
def opened(content: bytes) -> Iterator[Any]:
    """Open the bytes of a sound file with soundfile; its samples are not read yet.

    Raises:
        InputError: The bytes are no sound, cut off or damaged.
    """
    check_whole(content)
    library = soundfile()
    try:
        with library.SoundFile(BytesIO(content)) as sound:
            if sound.samplerate > FASTEST:
                raise InputError(f"it has {sound.samplerate:,} samples a second, more than {FASTEST:,}: it is damaged")
            yield sound
    except library.LibsndfileError as error:
        raise InputError(f"it is no sound, damaged, or of a kind that is not read ({error.error_string})") from error


def check_whole(content: bytes) -> None:
    """Check that all bytes are there that the header of a WAV file announces: libsndfile reads what is left.

    Raises:
        InputError: Some are not there.
    """
    announced = int.from_bytes(content[4:8], "little") + 8
    if content[:4] == b"RIFF" and len(content) < announced < STREAMED:
        raise InputError(f"it is cut off: {len(content):,} of {announced:,} bytes are there; save it again")


def check_length(seconds: float, most: float) -> None:
    """Check that a clip is not longer than the limit.

    Raises:
        InputError: It is.
    """
    if seconds > most:
        raise InputError(
            f"it is {seconds:,.1f} seconds long, more than max_seconds = {most:,.1f}; cut it, or raise that limit"
        )


def checked(samples: Samples) -> Samples:
    """Return samples as they are if there are some, and all are numbers.

    Raises:
        InputError: There are none, or some are infinite or no numbers.
    """
    if not len(samples):
        raise InputError("it has no samples")
    if not np.isfinite(samples).all():
        raise InputError(f"{np.sum(~np.isfinite(samples)):,} of its {len(samples):,} samples are no finite numbers")
    return samples


def soundfile() -> Any:
    """Import soundfile.

    Raises:
        InputError: soundfile is not installed.
    """
    try:
        import soundfile as library
    except (ImportError, OSError) as error:  # OSError: its libsndfile is missing
        raise InputError(
            f"sound is read by soundfile, which cannot be used here ({error}): pip install 'heedful[audio]'"
        ) from error
    return library
