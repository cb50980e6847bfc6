"""Audio files (WAV, FLAC, Ogg, MP3, AIFF, AU; M4A, MP4 and WebM with PyAV) as samples of one channel at one rate.

N samples, C channels.
"""

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
from heedful.media.containers import AUDIO_ENDINGS, HEAD, ContainerAudio, container_format, matroska_bytes
from heedful.media.foreign_messages import without_foreign_messages

Samples = Float32[np.ndarray, " N"]

CROSSINGS = 16  # zero crossings of the sinc on either side
ROLLOFF = 0.95  # end of the pass band, as a share of half the lower rate; a wider one would let aliases through
OUTPUTS = 4096  # output samples computed at a time, which limits memory


def resampled(samples: Samples, before: int, after: int) -> Samples:
    """Resample one-channel audio from one sampling rate to another; return it unchanged if the rates are equal.

    Returns ceil(N x after / before) samples, the first at the time of the first input.
    """
    if before == after:
        return samples
    # The weights repeat: from 44.1 to 16 kHz, every 160 outputs lie at the same positions between 441 inputs.
    common = math.gcd(before, after)
    steps, phases = before // common, after // common
    count = -(-len(samples) * phases // steps)
    reach = math.ceil(CROSSINGS * max(1.0, steps / phases) / ROLLOFF)

    # kernel (phases, 2 reach + 1): the weights of the inputs around each output of a period. Its pass band ends below
    # half the lower rate; otherwise frequencies above that limit would be mirrored into the audio (aliasing).
    width = min(1.0, phases / steps) * ROLLOFF
    offset = (torch.arange(phases) * steps % phases).double()[:, None] / phases  # from the input before each output
    distance = (torch.arange(-reach, reach + 1) - offset) * width
    window = torch.cos(distance * math.pi / 2 / CROSSINGS).square() * (distance.abs() <= CROSSINGS)
    kernel = (width * torch.sinc(distance) * window).float()

    around = F.pad(torch.from_numpy(samples), (reach, reach)).unfold(0, 2 * reach + 1, 1)  # a view
    # In parts, because each output needs the products of 2 reach + 1 inputs.
    parts = [
        (around[outputs * steps // phases] * kernel[outputs % phases]).sum(1)
        for outputs in torch.arange(count).split(OUTPUTS)
    ]
    return torch.cat(parts).numpy()


CANCELLED = 1e-4  # channels cancel each other if their mean has less than this share of their power: 40 dB less


class ChannelMixer:
    """Mixer that averages channels block by block, or selects one; it detects averaged channels that cancel out.

    Microphones or wires with opposite polarity give the same audio with opposite signs, whose mean is silence.
    """

    def __init__(self, channel: int | None) -> None:
        self.channel = channel
        self._before = self._after = 0.0  # power before and after averaging, summed over all samples

    def mix(self, block: Float32[np.ndarray, "N C"]) -> Samples:
        channels = block.shape[1]
        if self.channel is not None:
            if self.channel > channels:
                if channels == 1:
                    raise InputError(
                        f"it has only 1 channel, but audio.channel = {self.channel}; leave audio.channel out"
                    )
                raise InputError(
                    f"it has {channels} channels, but audio.channel = {self.channel}; choose one from 1 to {channels}"
                )
            return np.ascontiguousarray(block[:, self.channel - 1])
        mean = block.mean(axis=1)
        if channels > 1:
            # In float64: a sum over hours of samples in float32 would lose the quiet ones.
            self._before += float(np.square(block, dtype=np.float64).sum()) / channels
            self._after += float(np.square(mean, dtype=np.float64).sum())
        return mean

    def check(self) -> None:
        """Check that the channels of all blocks so far do not cancel each other; call it after the last block."""
        if self._before > 0 and self._after < CANCELLED * self._before:
            quieter = 10 * math.log10(self._before / self._after) if self._after else math.inf
            silent = "silence" if math.isinf(quieter) else f"{quieter:.0f} dB quieter than they are"
            raise InputError(
                f"its channels cancel each other: their mean is {silent}; select one, with --channel 1 or, in a "
                "recipe, audio.channel = 1"
            )


STREAMED = 2**31 - 2**16  # bytes of a WAV file; a header that announces more was written before the length was known
MAX_ANNOUNCED = 2**32 - 1  # bytes that a header can announce
AU_HEADER = 24  # bytes of the shortest header of an AU file
MAX_CHUNKS = 1000  # chunks that are searched for the samples; intact files have only a few


def corrected_header(stream: BinaryIO, size: int) -> bytes | None:
    """Return the header of a WAV or AU file of unknown length, with the length of the file written into it.

    Recorders that write to a pipe leave 0, or a very large number, where the number of bytes belongs. Returns None if
    the header is correct or the file has another format.
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
    chunks = islice(_chunks(stream, 12, order), MAX_CHUNKS)
    offset, length = next(((offset, length) for name, offset, length in chunks if name == b"data"), (size, 0))
    begin = offset + 8
    if begin >= size:
        return None
    if length:
        is_unknown = length >= STREAMED and begin + length > size
    else:
        # A file that really has no samples continues with other chunks, which fill it to its end.
        end = begin
        for _, chunk, chunk_length in islice(_chunks(stream, begin, order), MAX_CHUNKS):
            end = chunk + 8 + chunk_length
        is_unknown = not size <= end <= size + 1
    if not is_unknown:
        return None
    stream.seek(0)
    header = bytearray(stream.read(begin))
    header[4:8] = min(size - 8, MAX_ANNOUNCED).to_bytes(4, order)
    header[offset + 4 : begin] = min(size - begin, MAX_ANNOUNCED).to_bytes(4, order)
    return bytes(header)


def _chunks(stream: BinaryIO, offset: int, order: Literal["little", "big"]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, offset and announced length of each chunk of a WAV file, starting at `offset`."""
    while True:
        stream.seek(offset)
        header = stream.read(8)
        if len(header) < 8:
            return
        length = int.from_bytes(header[4:], order)
        yield header[:4], offset, length
        # RIFF pads chunks of odd length by one byte.
        offset += 8 + length + length % 2


ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", *AUDIO_ENDINGS)

KINDS = "WAV, FLAC, Ogg, Opus, MP3, AIFF, AU and CAF and, with heedful[media], M4A, MP4, MOV, WebM, MKV, AAC and AVI"
MAX_RATE = 768_000  # samples per second: more means a damaged header
UNKNOWN_LENGTH = 2**63 - 1  # libsndfile's number of samples for a file that does not announce its length
BLOCK = 1 << 16  # samples read at a time
SMALL_BLOCK = 1 << 9  # samples read at a time from a file that may be damaged: a block with damage is lost
SCALES = {"int16": (0, 2.0**15), "int32": (0, 2.0**31), "uint8": (128, 2.0**7)}  # zero, and its distance to 1.0
SILENCE = 1e-4  # samples this close to each other are silence, or rounding noise of 16 bits
MAX_SAMPLE = 8.0  # the largest sample; audio is from -1 to 1, and loud music saved without clipping reaches 2 or 3
PAGE = 1 << 16  # bytes at the end of an Ogg file that contain its whole last page
HEADER_BYTES = 256  # bytes at the beginning of a file, which announce its length


def read_audio(content: bytes, config: AudioConfig, *, truncated: bool = False) -> Samples:
    """Decode the bytes of an audio file as samples of one channel at the configured rate.

    Samples are from -1 to 1; loud audio that was saved without clipping may exceed that. Channels are averaged, unless
    `config.channel` selects one. With `truncated`, a file that is cut off is read as far as possible.
    """
    with open_audio(content, truncated=truncated) as audio, clear_errors():
        rate, frames = audio.samplerate, frames_of(audio, content, truncated=truncated)
        check_length(frames / rate, config.max_seconds)
        samples = audio.read(frames, dtype="float32", always_2d=True)  # GSM does not say how many samples follow
        check_count(len(samples), frames)
    mixer = ChannelMixer(config.channel)
    # Samples are checked before resampling, which would spread a NaN over the samples around it.
    mono = valid_samples(mixer.mix(samples))
    mixer.check()
    return valid_samples(resampled(mono, rate, config.rate))


def from_samples(values: np.ndarray, config: AudioConfig) -> Samples:
    """Check in-memory samples of one channel, at the configured rate and at most `max_seconds` long; return float32."""
    check_length(len(values) / config.rate if values.ndim else 0.0, config.max_seconds)
    return as_samples(values, config.rate)


def as_samples(values: np.ndarray, rate: int) -> Samples:
    """Return samples of one channel at `rate` as float32; integers are scaled as they are in WAV files."""
    scale = SCALES.get(values.dtype.name)
    if values.ndim != 1 or (scale is None and values.dtype.kind != "f"):
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is not audio; give samples of one channel, "
            f"{rate:,} per second, from -1.0 to 1.0 or of type int16, int32 or uint8; put several arrays in a list"
        )
    if scale is not None:
        values = (values.astype(np.float64) - scale[0]) / scale[1]
    return valid_samples(np.ascontiguousarray(values, dtype=np.float32))


def au(samples: Samples, rate: int) -> bytes:
    """Encode samples of one channel as an AU file with 32-bit floats, so that none is rounded.

    Equal samples give equal bytes, unlike in a WAV file with floats, which contains the time of writing.
    """
    stream = BytesIO()
    soundfile().write(stream, samples, rate, format="AU", subtype="FLOAT")
    return stream.getvalue()


def frames_of(audio: Any, source: bytes | Path, *, truncated: bool = False) -> int:
    """Return the number of samples per channel of an open audio file, which was opened from `source`.

    A file is read to its end for this if it may be cut off or does not announce its length, like FLAC from a pipe.
    """
    if audio.frames != UNKNOWN_LENGTH and not truncated:
        return audio.frames
    count = 0
    with open_audio(source, truncated=truncated) as again:
        try:
            for block in blocks(again, UNKNOWN_LENGTH, SMALL_BLOCK if truncated else BLOCK):
                count += len(block)
        # A truncated file is as long as its part before the damage.
        except InputError:
            if not truncated:
                raise
    return count


def blocks(audio: Any, limit: int, size: int = BLOCK) -> Iterator[Float32[np.ndarray, "N C"]]:
    """Yield at most `limit` samples of an open audio file (N C), block by block."""
    while True:
        with clear_errors():
            block = audio.read(min(size, limit), dtype="float32", always_2d=True)
        if not len(block):
            return
        yield block
        limit -= len(block)


def open_audio(source: bytes | Path, *, truncated: bool = False) -> Any:
    """Open an audio file or its bytes as soundfile does, without reading samples; the caller must close it."""
    library = soundfile()
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
            check_whole(stream, truncated=truncated)
            stream.seek(0)
            kind = container_format(stream.read(HEAD))
            header = None if kind else corrected_header(stream, stream.seek(0, SEEK_END))
            # libsndfile trusts the header, so it receives the bytes of the file with a corrected one.
            if header is not None:
                stream.seek(len(header))
                source = header + stream.read()
        if kind:
            audio: Any = ContainerAudio(source, kind)
        else:
            with clear_errors():
                audio = library.SoundFile(BytesIO(source) if isinstance(source, bytes) else fsencode(source))
            audio.seekable = lambda: False  # otherwise soundfile seeks after each read, and an MP3 loses its position
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror or error})") from error
    if not 0 < audio.samplerate <= MAX_RATE:
        audio.close()
        raise InputError(f"its sampling rate is {audio.samplerate:,} Hz, which is impossible: the file is damaged")
    return audio


@contextmanager
def clear_errors(name: str = "") -> Iterator[None]:
    """Turn libsndfile errors into an InputError that begins with `name`, if any, and hide what libraries print."""
    try:
        with without_foreign_messages():
            yield
    except InputError as error:
        if not name:
            raise
        raise InputError(f"{name}: {error}") from error
    except soundfile().LibsndfileError as error:
        raise InputError(
            f"{name and f'{name}: '}it is not audio, is damaged, or is in an unsupported format "
            f"({error.error_string}); supported formats: {KINDS}"
        ) from error


def check_whole(stream: BinaryIO, *, truncated: bool = False) -> None:
    """Check that a file is neither empty nor shorter than it announces; libsndfile would report neither.

    The headers of WAV, AIFF, AU and Matroska announce the number of bytes, and each page of an Ogg file its size.
    """
    header, size = stream.read(HEADER_BYTES), stream.seek(0, SEEK_END)
    if not size:
        raise InputError("the file is empty; remove it, or save it again")
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
    # Larger numbers mean an unknown length; see `corrected_header`.
    if announced is not None and size < announced < STREAMED:
        raise InputError(f"it is cut off: it has {size:,} of {announced:,} bytes; save it again")
    if header.startswith(b"OggS"):
        stream.seek(max(0, size - PAGE))
        page = stream.read().rpartition(b"OggS")[2]
        # after "OggS" a page has 22 bytes, the number of its segments, and their sizes (RFC 3533, section 6)
        segments = page[22] if len(page) > 22 else 0
        sizes = page[23 : 23 + segments]
        if not len(sizes) == segments > 0 or len(page) < 23 + segments + sum(sizes):
            raise InputError("it is cut off: its last page is incomplete; save it again")


def check_count(count: int, announced: int) -> None:
    if count < announced:
        raise InputError(f"it is cut off or damaged: {count:,} of {announced:,} samples can be read; save it again")


def check_length(seconds: float, limit: float) -> None:
    if seconds > limit:
        raise InputError(
            f"it is {seconds:,.1f} seconds long, more than max_seconds = {limit:,.1f}; shorten or split it, or "
            "raise that limit"
        )


def valid_samples(samples: Samples) -> Samples:
    """Return samples unchanged after checking that there are any, and that all are finite and of plausible size."""
    if not len(samples):
        raise InputError("it has no samples")
    if not np.isfinite(samples).all():
        raise InputError(f"{np.sum(~np.isfinite(samples)):,} of its {len(samples):,} samples are not finite")
    if (loudest := float(np.abs(samples).max())) > MAX_SAMPLE:
        raise InputError(
            f"its samples reach {loudest:,.6g}, but audio ranges from -1 to 1; divide them by the full scale, "
            "such as 32,768 for 16-bit samples"
        )
    return samples


def is_silent(samples: np.ndarray) -> bool:
    """Return True if samples (N) or (N C) are inaudible: all samples of each channel are nearly equal."""
    return float(np.ptp(samples, axis=0).max()) <= SILENCE


def soundfile() -> Any:
    try:
        import soundfile as library
    except (ImportError, OSError) as error:  # OSError: its libsndfile is missing
        raise InputError(
            f"audio is read with soundfile, which cannot be used here ({error}): pip install 'heedful[audio]'"
        ) from error
    return library
