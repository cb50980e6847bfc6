"""Sound from files (WAV, FLAC, Ogg, MP3, AIFF, AU; by PyAV M4A, MP4, WebM and others) as samples of one channel."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_END, BytesIO
from os import fsencode
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32

from heedful.config.modalities import AudioConfig
from heedful.data.media.channels import ChannelMixer
from heedful.data.media.containers import HEAD, SOUND_ENDINGS, ContainerSound, container_format, matroska_bytes
from heedful.data.media.foreign_messages import without_foreign_messages
from heedful.data.media.resampling import Samples, resampled
from heedful.data.media.wav_headers import STREAMED, true_header
from heedful.errors import InputError

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", *SOUND_ENDINGS)

KINDS = "WAV, FLAC, Ogg, Opus, MP3, AIFF, AU and CAF and, with heedful[media], M4A, MP4, MOV, WebM, MKV, AAC and AVI"
FASTEST = 768_000  # samples a second: more are a damaged header
UNTOLD = 2**63 - 1  # samples of a file that does not tell how many there are, as libsndfile says
BLOCK = 1 << 16  # samples that are read at a time
SMALL_BLOCK = 1 << 9  # the same where the file is damaged somewhere: a block with the damage is lost
SCALES = {"int16": (0, 2.0**15), "int32": (0, 2.0**31), "uint8": (128, 2.0**7)}  # zero and one in samples of integers
QUIETEST = 1e-4  # samples of 16 bits that are this near to each other are silence, or the noise of rounding
LOUDEST = 8.0  # the largest sample; sound is from -1 to 1, and loud music saved without clipping reaches 2 or 3
PAGE = 1 << 16  # bytes that hold the last page of an Ogg file, and more
LONGEST_HEAD = 256  # bytes of a file that say how many it has


def read_sound(content: bytes, config: AudioConfig, *, truncated: bool = False) -> Samples:
    """Read the bytes of a sound file as samples of one channel at the rate of the settings, mostly from -1 to 1.

    Channels are averaged, unless `channel` names one.

    Args:
        content: The bytes.
        config: The settings.
        truncated: True to read what is there of a file that is cut off.

    Raises:
        InputError: The bytes are no sound, cut off, damaged, without samples or with some that are no numbers or far
            beyond 1; the channels cancel each other; or the sound is longer than `max_seconds`.
    """
    samples, rate = read_channels(content, config.max_seconds, truncated=truncated)
    mixer = ChannelMixer(config.channel)
    mixed = checked(mixer.mix(samples))
    mixer.check()
    return checked(resampled(mixed, rate, config.rate))


def from_samples(values: np.ndarray, config: AudioConfig) -> Samples:
    """Check samples in memory, of one channel at the rate of the settings, and no more than `max_seconds` of them.

    Raises:
        InputError: The array has another shape or no fractions, or is what `read_sound` refuses in a file.
    """
    check_length(len(values) / config.rate if values.ndim else 0.0, config.max_seconds)
    return as_samples(values, config.rate)


def as_samples(values: np.ndarray, rate: int) -> Samples:
    """Check samples in memory, of one channel at a rate, and return them as float32.

    Integers of 16 and 32 bits, and unsigned ones of 8, are scaled as they are in WAV files.

    Raises:
        InputError: The array has another shape, another type, or nothing in it; or some are no numbers.
    """
    scale = SCALES.get(values.dtype.name)
    if values.ndim != 1 or (scale is None and values.dtype.kind != "f"):
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is no sound; give samples from -1.0 to 1.0, or "
            f"of int16, int32 or uint8, of one channel, {rate:,} a second, and several sounds in a list"
        )
    if scale is not None:
        values = (values.astype(np.float64) - scale[0]) / scale[1]
    return checked(np.ascontiguousarray(values, dtype=np.float32))


def au(samples: Samples, rate: int) -> bytes:
    """Encode samples of one channel as the bytes of an AU file of 32-bit floats, so that none is rounded.

    Equal samples are equal bytes: a WAV file of floats would hold the time at which it was written.
    """
    stream = BytesIO()
    soundfile().write(stream, samples, rate, format="AU", subtype="FLOAT")
    return stream.getvalue()


def read_channels(content: bytes, most: float, *, truncated: bool = False) -> tuple[Float32[np.ndarray, "N C"], int]:
    """Read all channels of a sound file (N C), and its samples a second; at most so many seconds.

    Raises:
        InputError: As for `read_sound`.
    """
    with opened(content, truncated=truncated) as sound:
        frames = frames_of(sound, content, truncated=truncated)
        check_length(frames / sound.samplerate, most)
        samples = sound.read(frames, dtype="float32", always_2d=True)  # GSM cannot tell how many follow
        check_count(len(samples), frames)
        return samples, sound.samplerate


def frames_of(sound: Any, source: bytes | Path, *, truncated: bool = False) -> int:
    """Find the number of samples of each channel of an open sound file, made of `source`.

    A file that does not tell, as FLAC that was written into a pipe, is read to its end for that, and so is one that may
    be cut off.

    Raises:
        InputError: It is damaged.
    """
    if sound.frames != UNTOLD and not truncated:
        return sound.frames
    count = 0
    with open_sound(source, truncated=truncated) as again:
        try:
            for block in blocks(again, UNTOLD, SMALL_BLOCK if truncated else BLOCK):
                count += len(block)
        except InputError:
            if not truncated:
                raise
    return count


def blocks(sound: Any, most: int, size: int = BLOCK) -> Iterator[Float32[np.ndarray, "N C"]]:
    """Read at most so many samples of an open sound file (N C), block by block; behind them may stand other things.

    Raises:
        InputError: It is damaged.
    """
    try:
        while len(block := sound.read(min(size, most), dtype="float32", always_2d=True)):
            yield block
            most -= len(block)
    except soundfile().LibsndfileError as error:
        raise unreadable(error) from error


@contextmanager
def opened(content: bytes, *, truncated: bool = False) -> Iterator[Any]:
    """Open the bytes of a sound file with soundfile; its samples are not read yet.

    Raises:
        InputError: The bytes are no sound, cut off or damaged.
    """
    with open_sound(content, truncated=truncated) as sound, without_foreign_messages():
        try:
            yield sound
        except soundfile().LibsndfileError as error:
            raise unreadable(error) from error


def open_sound(source: bytes | Path, *, truncated: bool = False) -> Any:
    """Open a sound file, or its bytes, with soundfile, to be closed by the caller; its samples are not read yet.

    Raises:
        InputError: The file cannot be read, is no sound, cut off or damaged.
    """
    library = soundfile()
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
            check_whole(stream, truncated=truncated)
            stream.seek(0)
            kind = container_format(stream.read(HEAD))
            source = with_true_header(stream, source)
        if kind is not None:
            sound: Any = ContainerSound(source, kind)
        else:
            with without_foreign_messages():
                sound = library.SoundFile(BytesIO(source) if isinstance(source, bytes) else fsencode(source))
            sound.seekable = lambda: False  # else soundfile looks for its place after each read, and an MP3 loses it
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror or error})") from error
    except library.LibsndfileError as error:
        raise unreadable(error) from error
    if not 0 < sound.samplerate <= FASTEST:
        sound.close()
        raise InputError(f"it has {sound.samplerate:,} samples a second, more than {FASTEST:,}: it is damaged")
    return sound


def with_true_header(stream: BinaryIO, source: bytes | Path) -> bytes | Path:
    """Return a sound file as it is, or its bytes with its length written into a header that does not tell it."""
    size = stream.seek(0, SEEK_END)
    header = true_header(stream, size)
    if header is None:
        return source
    stream.seek(len(header))
    return header + stream.read()


def unreadable(error: Any) -> InputError:
    """Make the error of a file that libsndfile cannot read."""
    return InputError(
        f"it is no sound, damaged, or of a kind that is not read ({error.error_string}); {KINDS} are read"
    )


def check_whole(stream: BinaryIO, *, truncated: bool = False) -> None:
    """Check that there are bytes, and all that a file announces: libsndfile reads what is left.

    The headers of WAV, AIFF, AU and Matroska tell how many there are, and each page of an Ogg file tells its size.

    Raises:
        InputError: There are none, or some are not there.
    """
    header, size = stream.read(LONGEST_HEAD), stream.seek(0, SEEK_END)
    if not size:
        raise InputError("the file is empty; take it out, or save it again")
    if truncated:
        return
    announced = announced_bytes(header)
    if announced is not None and size < announced < STREAMED:
        raise InputError(f"it is cut off: {size:,} of {announced:,} bytes are there; save it again")
    if header.startswith(b"OggS"):
        stream.seek(max(0, size - PAGE))
        page = stream.read().rpartition(b"OggS")[2]
        if not is_whole_page(page):
            raise InputError("it is cut off: its last page is not whole; save it again")


def is_whole_page(page: bytes) -> bool:
    """True if all of an Ogg page is there, from behind its "OggS" on (RFC 3533, section 6)."""
    segments = page[22] if len(page) > 22 else 0
    sizes = page[23 : 23 + segments]
    return len(sizes) == segments > 0 and len(page) >= 23 + segments + sum(sizes)


def announced_bytes(header: bytes) -> int | None:
    """Read how many bytes a sound file has from its first ones; None where they do not say."""
    match header[:4]:
        case b"RIFF":
            return int.from_bytes(header[4:8], "little") + 8
        case b"FORM":
            return int.from_bytes(header[4:8], "big") + 8
        case b".snd":
            return int.from_bytes(header[4:8], "big") + int.from_bytes(header[8:12], "big")
    return matroska_bytes(header)


def check_count(there: int, announced: int) -> None:
    """Check that all samples are there that a file announces.

    Raises:
        InputError: Some are not.
    """
    if there < announced:
        raise InputError(f"it is cut off or damaged: {there:,} of {announced:,} samples can be read; save it again")


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
    """Return samples as they are if there are some, and all are numbers that can be samples.

    Raises:
        InputError: There are none, or some are infinite, no numbers, or far beyond 1.
    """
    if not len(samples):
        raise InputError("it has no samples")
    if not np.isfinite(samples).all():
        raise InputError(f"{np.sum(~np.isfinite(samples)):,} of its {len(samples):,} samples are no finite numbers")
    if (loudest := float(np.abs(samples).max())) > LOUDEST:
        raise InputError(
            f"its samples reach {loudest:,.6g}, and those of sound are from -1 to 1; divide them by what is 1 in them, "
            "such as 32,768 for samples of 16 bits"
        )
    return samples


def is_silent(samples: np.ndarray) -> bool:
    """True if nothing can be heard in samples (N) or (N C): all of a channel are nearly equal."""
    return float(np.ptp(samples, axis=0).max()) <= QUIETEST


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
