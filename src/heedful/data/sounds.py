"""Sound from files: WAV, FLAC, Ogg and MP3 as samples of one channel; what cannot be read has a clear error."""

from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Float32

from heedful.config.modalities import AudioConfig
from heedful.data.resampling import Samples, resampled
from heedful.errors import InputError

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au")

FASTEST = 768_000  # samples a second: more are a damaged header


def read_sound(content: bytes, config: AudioConfig) -> Samples:
    """Read the bytes of a sound file as samples of one channel at the rate of the settings, mostly from -1 to 1.

    Channels are averaged.

    Raises:
        InputError: The bytes are no sound, cut off, damaged, without samples or with some that are no numbers, or
            longer than `max_seconds`.
    """
    samples, rate = read_channels(content, config.max_seconds)
    return checked(resampled(checked(samples.mean(axis=1)), rate, config.rate))


def read_channels(content: bytes, most: float) -> tuple[Float32[np.ndarray, "N C"], int]:
    """Read all channels of a sound file (N C), and its samples a second; at most so many seconds.

    Raises:
        InputError: As for `read_sound`.
    """
    library = soundfile()
    try:
        with library.SoundFile(BytesIO(content)) as sound:
            if sound.samplerate > FASTEST:
                raise InputError(f"it has {sound.samplerate:,} samples a second, more than {FASTEST:,}: it is damaged")
            seconds = sound.frames / sound.samplerate
            if seconds > most:
                raise InputError(
                    f"it is {seconds:,.0f} seconds long, more than max_seconds = {most:,.0f}; cut it, or raise "
                    "that limit"
                )
            samples = sound.read(dtype="float32", always_2d=True)
            if len(samples) < sound.frames:
                raise InputError(f"it is cut off: {len(samples):,} of {sound.frames:,} samples are there")
            return samples, sound.samplerate
    except library.LibsndfileError as error:
        raise InputError(f"it is no sound, damaged, or of a kind that is not read ({error.error_string})") from error


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
