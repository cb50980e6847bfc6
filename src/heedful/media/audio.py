"""Audio files (WAV, FLAC, Ogg, MP3, AIFF, AU; M4A, MP4 and WebM by PyAV) as samples of one channel at one rate."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_END, BytesIO
from itertools import islice
from os import fsencode
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float32

from heedful.config.modalities import AudioConfig
from heedful.errors import InputError
from heedful.media.containers import HEAD, SOUND_ENDINGS, ContainerSound, container_format, matroska_bytes
from heedful.media.foreign_messages import without_foreign_messages

Samples = Float32[np.ndarray, " N"]

CROSSINGS = 16  # zero crossings of the sinc on either side
ROLLOFF = 0.95  # the pass band ends below the lower of the two limits, where the window lets its mirror image through
OUTPUTS = 4096  # that are computed at a time


def resampled(samples: Samples, before: int, after: int) -> Samples:
    """Resample audio of one channel from one number of samples a second to another; at equal rates nothing changes.

    Gives ceil(N x after / before) samples, the first at the time of the first.
    """
    if before == after:
        return samples
    common = math.gcd(before, after)
    steps, phases = before // common, after // common
    count = -(-len(samples) * phases // steps)
    reach = math.ceil(CROSSINGS * max(1.0, steps / phases) / ROLLOFF)

    # kernel (phases, 2 reach + 1): how each of the outputs of a period weighs the inputs around it
    width = min(1.0, phases / steps) * ROLLOFF
    offset = (torch.arange(phases) * steps % phases).double()[:, None] / phases  # the input before an output
    distance = (torch.arange(-reach, reach + 1) - offset) * width
    window = torch.cos(distance * math.pi / 2 / CROSSINGS).square() * (distance.abs() <= CROSSINGS)
    kernel = (width * torch.sinc(distance) * window).float()

    around = F.pad(torch.from_numpy(samples), (reach, reach)).unfold(0, 2 * reach + 1, 1)  # a view
    # So many outputs at a time, as each needs the products of 2 reach + 1 inputs.
    parts = [
        (around[outputs * steps // phases] * kernel[outputs % phases]).sum(1)
        for outputs in torch.arange(count).split(OUTPUTS)
    ]
    return torch.cat(parts).numpy()


CANCELLED = 1e-4  # power of the mean, as a share of the power of the channels: 40 dB less


class ChannelMixer:
    """Makes one channel of several, block by block, and notices channels that cancel.

    Two microphones or two wires of opposite polarity give the same audio with opposite signs, whose mean is silence.
    """

    def __init__(self, channel: int | None) -> None:
        self.channel = channel
        self._before = self._after = 0.0  # power, summed over all samples

    def mix(self, block: Float32[np.ndarray, "N C"]) -> Samples:
        channels = block.shape[1]
        if self.channel is not None:
            if self.channel > channels:
                raise InputError(
                    f"it has {channels} channel{'s' * (channels > 1)}, and channel {self.channel} is asked for; "
                    "choose another one"
                )
            return np.ascontiguousarray(block[:, self.channel - 1])
        mean = block.mean(axis=1)
        if channels > 1:
            self._before += float(np.square(block, dtype=np.float64).sum()) / channels
            self._after += float(np.square(mean, dtype=np.float64).sum())
        return mean

    def check(self) -> None:
        """Check that the channels of all blocks so far do not cancel each other."""
        # Only now, as the channels may cancel in one block and not in all.
        if self._before > 0 and self._after < CANCELLED * self._before:
            quieter = 10 * math.log10(self._before / self._after) if self._after else math.inf
            silent = "silence" if math.isinf(quieter) else f"{quieter:.0f} dB quieter than they are"
            raise InputError(
                f"its channels cancel each other: their mean is {silent}; choose one, with --channel 1 or, in a "
                "recipe, audio.channel = 1"
            )


STREAMED = 2**31 - 2**16  # bytes of a WAV file; a header that announces more was written before the length was known
MAX_ANNOUNCED = 2**32 - 1  # bytes that a header can announce
AU_HEADER = 24  # bytes of the shortest header of an AU file
CHUNKS = 1000  # that are looked through for the samples; files have a handful


def true_header(stream: BinaryIO, size: int) -> bytes | None:
    """Return the header of a WAV or AU file of unknown length, with the length of the file written into it.

    Recorders that write into a pipe leave 0, or a very large number, where the number of bytes belongs. Returns None if
    the header is true, or that of another format.
    """
    stream.seek(0)
    start = stream.read(12)
    if start[:4] == b".snd":
        begin, length = int.from_bytes(start[4:8], "big"), int.from_bytes(start[8:12], "big")
        if length or not AU_HEADER <= begin < min(size, STREAMED):
            return None
        stream.seek(0)
        header = bytearray(stream.read(begin))
        header[8:12] = (size - begin).to_bytes(4, "big")
        return bytes(header)
    if start[:4] not in (b"RIFF", b"RIFX") or start[8:] != b"WAVE":
        return None
    order = "little" if start[:4] == b"RIFF" else "big"
    for name, place, length in islice(_chunks(stream, 12, order), CHUNKS):
        if name != b"data":
            continue
        begin = place + 8
        if not _is_unknown(stream, begin, length, size, order):
            return None
        stream.seek(0)
        header = bytearray(stream.read(begin))
        header[4:8] = min(size - 8, MAX_ANNOUNCED).to_bytes(4, order)
        header[place + 4 : begin] = min(size - begin, MAX_ANNOUNCED).to_bytes(4, order)
        return bytes(header)
    return None


def _chunks(stream: BinaryIO, place: int, order: Literal["little", "big"]) -> Iterator[tuple[bytes, int, int]]:
    """Iterate over the chunks of a WAV file from a place on: the name, place and announced length of each."""
    while True:
        stream.seek(place)
        header = stream.read(8)
        if len(header) < 8:
            return
        length = int.from_bytes(header[4:], order)
        yield header[:4], place, length
        place += 8 + length + length % 2


def _is_unknown(stream: BinaryIO, begin: int, length: int, size: int, order: Literal["little", "big"]) -> bool:
    """True if the length of the samples that begin at a place was not known when the header was written.

    After samples that are really none, other chunks fill the file to its end.
    """
    if begin >= size:
        return False
    if length:
        return length >= STREAMED and begin + length > size
    place = begin
    for _, chunk, following in islice(_chunks(stream, begin, order), CHUNKS):
        place = chunk + 8 + following
    return not size <= place <= size + 1


ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", *SOUND_ENDINGS)

KINDS = "WAV, FLAC, Ogg, Opus, MP3, AIFF, AU and CAF and, with heedful[media], M4A, MP4, MOV, WebM, MKV, AAC and AVI"
MAX_RATE = 768_000  # samples a second: more are a damaged header
UNKNOWN_LENGTH = 2**63 - 1  # samples of a file that does not say how many there are, in libsndfile
BLOCK = 1 << 16  # samples that are read at a time
SMALL_BLOCK = 1 << 9  # the same where the file is damaged somewhere: a block with the damage is lost
SCALES = {"int16": (0, 2.0**15), "int32": (0, 2.0**31), "uint8": (128, 2.0**7)}  # zero and one in samples of integers
SILENCE = 1e-4  # samples of 16 bits that are this near to each other are silence, or the noise of rounding
MAX_SAMPLE = 8.0  # the largest sample; audio is from -1 to 1, and loud music saved without clipping reaches 2 or 3
PAGE = 1 << 16  # bytes that hold the last page of an Ogg file, and more
HEADER_BYTES = 256  # bytes of a file that say how many it has


def read_sound(content: bytes, config: AudioConfig, *, truncated: bool = False) -> Samples:
    """Read the bytes of an audio file as samples of one channel at the rate of the settings, mostly from -1 to 1.

    Channels are averaged, unless `channel` names one. With `truncated`, what is there of a file that is cut off is
    read. Refused are damaged files, channels that cancel each other, and more than `max_seconds`.
    """
    with opened(content, truncated=truncated) as sound:
        rate, frames = sound.samplerate, frames_of(sound, content, truncated=truncated)
        check_length(frames / rate, config.max_seconds)
        samples = sound.read(frames, dtype="float32", always_2d=True)  # GSM cannot say how many follow
        check_count(len(samples), frames)
    mixer = ChannelMixer(config.channel)
    mixed = checked(mixer.mix(samples))
    mixer.check()
    return checked(resampled(mixed, rate, config.rate))


def from_samples(values: np.ndarray, config: AudioConfig) -> Samples:
    """Check samples in memory, of one channel at the rate of the settings, and no more than `max_seconds` of them."""
    check_length(len(values) / config.rate if values.ndim else 0.0, config.max_seconds)
    return as_samples(values, config.rate)


def as_samples(values: np.ndarray, rate: int) -> Samples:
    """Return samples in memory, of one channel at a rate, as float32; integers are scaled as they are in WAV files."""
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


def frames_of(sound: Any, source: bytes | Path, *, truncated: bool = False) -> int:
    """Find the number of samples of each channel of an open audio file, made of `source`.

    A file that may be cut off, or does not say its length, as FLAC from a pipe, is read to its end for that.
    """
    if sound.frames != UNKNOWN_LENGTH and not truncated:
        return sound.frames
    count = 0
    with open_sound(source, truncated=truncated) as again:
        try:
            for block in blocks(again, UNKNOWN_LENGTH, SMALL_BLOCK if truncated else BLOCK):
                count += len(block)
        except InputError:
            if not truncated:
                raise
    return count


def blocks(sound: Any, most: int, size: int = BLOCK) -> Iterator[Float32[np.ndarray, "N C"]]:
    """Read at most so many samples of an open audio file (N C), block by block; other things may follow them."""
    with named_damage():
        while len(block := sound.read(min(size, most), dtype="float32", always_2d=True)):
            yield block
            most -= len(block)


@contextmanager
def opened(content: bytes, *, truncated: bool = False) -> Iterator[Any]:
    """Open the bytes of an audio file with soundfile; its samples are not read yet."""
    with open_sound(content, truncated=truncated) as sound, without_foreign_messages(), named_damage():
        yield sound


def open_sound(source: bytes | Path, *, truncated: bool = False) -> Any:
    """Open an audio file, or its bytes, with soundfile, to be closed by the caller; its samples are not read yet."""
    library = soundfile()
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
            check_whole(stream, truncated=truncated)
            stream.seek(0)
            kind = container_format(stream.read(HEAD))
            if (header := true_header(stream, stream.seek(0, SEEK_END))) is not None:
                stream.seek(len(header))
                source = header + stream.read()
        if kind is not None:
            sound: Any = ContainerSound(source, kind)
        else:
            with without_foreign_messages(), named_damage():
                sound = library.SoundFile(BytesIO(source) if isinstance(source, bytes) else fsencode(source))
            sound.seekable = lambda: False  # else soundfile looks for its place after each read, and an MP3 loses it
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror or error})") from error
    if not 0 < sound.samplerate <= MAX_RATE:
        sound.close()
        raise InputError(f"it has {sound.samplerate:,} samples a second, more than {MAX_RATE:,}: it is damaged")
    return sound


@contextmanager
def named_damage() -> Iterator[None]:
    """Turn the error of a file that libsndfile cannot read into an InputError."""
    library = soundfile()
    try:
        yield
    except library.LibsndfileError as error:
        raise unreadable(error) from error


def unreadable(error: Any) -> InputError:
    return InputError(
        f"it is no sound, damaged, or of a kind that is not read ({error.error_string}); {KINDS} are read"
    )


def check_whole(stream: BinaryIO, *, truncated: bool = False) -> None:
    """Check that there are bytes, and all that a file announces: libsndfile reads what is left.

    The headers of WAV, AIFF, AU and Matroska say how many there are, and each page of an Ogg file says its size.
    """
    header, size = stream.read(HEADER_BYTES), stream.seek(0, SEEK_END)
    if not size:
        raise InputError("the file is empty; take it out, or save it again")
    if truncated:
        return
    match header[:4]:
        case b"RIFF":
            announced = int.from_bytes(header[4:8], "little") + 8
        case b"FORM":
            announced = int.from_bytes(header[4:8], "big") + 8
        case b".snd":
            announced = int.from_bytes(header[4:8], "big") + int.from_bytes(header[8:12], "big")
        case _:
            announced = matroska_bytes(header)
    if announced is not None and size < announced < STREAMED:
        raise InputError(f"it is cut off: {size:,} of {announced:,} bytes are there; save it again")
    if header.startswith(b"OggS"):
        stream.seek(max(0, size - PAGE))
        page = stream.read().rpartition(b"OggS")[2]
        # after "OggS" a page has 22 bytes, the number of its segments, and their sizes (RFC 3533, section 6)
        segments = page[22] if len(page) > 22 else 0
        sizes = page[23 : 23 + segments]
        if not len(sizes) == segments > 0 or len(page) < 23 + segments + sum(sizes):
            raise InputError("it is cut off: its last page is not whole; save it again")


def check_count(there: int, announced: int) -> None:
    if there < announced:
        raise InputError(f"it is cut off or damaged: {there:,} of {announced:,} samples can be read; save it again")


def check_length(seconds: float, most: float) -> None:
    if seconds > most:
        raise InputError(
            f"it is {seconds:,.1f} seconds long, more than max_seconds = {most:,.1f}; cut it, or raise that limit"
        )


def checked(samples: Samples) -> Samples:
    """Return samples as they are if there are some, and all are numbers that can be samples."""
    if not len(samples):
        raise InputError("it has no samples")
    if not np.isfinite(samples).all():
        raise InputError(f"{np.sum(~np.isfinite(samples)):,} of its {len(samples):,} samples are no finite numbers")
    if (loudest := float(np.abs(samples).max())) > MAX_SAMPLE:
        raise InputError(
            f"its samples reach {loudest:,.6g}, and those of sound are from -1 to 1; divide them by what is 1 in them, "
            "such as 32,768 for samples of 16 bits"
        )
    return samples


def is_silent(samples: np.ndarray) -> bool:
    """True if nothing can be heard in samples (N) or (N C): all of a channel are nearly equal."""
    return float(np.ptp(samples, axis=0).max()) <= SILENCE


def soundfile() -> Any:
    try:
        import soundfile as library
    except (ImportError, OSError) as error:  # OSError: its libsndfile is missing
        raise InputError(
            f"sound is read by soundfile, which cannot be used here ({error}): pip install 'heedful[audio]'"
        ) from error
    return library
