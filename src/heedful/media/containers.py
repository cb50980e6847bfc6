"""Files that phones, cameras and browsers record (M4A, MP4, MOV, WebM, Matroska, AAC, 3GP, AVI), read by PyAV.

N samples, C channels, H height, W width.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Float32

from heedful.errors import InputError

SOUND_ENDINGS = (".m4a", ".m4b", ".aac", ".mp4", ".m4v", ".mov", ".3gp", ".webm", ".weba", ".mka", ".mkv", ".avi")
VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".3gp", ".webm", ".mkv", ".avi")
ATOMS = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")  # names of the first part of MP4 and QuickTime files
MISSING = 0.25  # seconds that may be missing of what a file announces: its numbers are rounded, and audio starts late
EBML, SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"  # the first two elements of Matroska and WebM
HEAD = 12  # bytes that show the kind
UNKNOWN_LENGTH = 2**63 - 1  # samples of a file that does not say how many there are
EXTRA = (
    "M4A, MP4, MOV, WebM, Matroska, AAC and AVI are read by PyAV, which is not installed: pip install 'heedful[media]'"
)


def container_format(head: bytes) -> str | None:
    """Name the format of a file by its first twelve bytes, as FFmpeg calls it; None for formats of other readers.

    FFmpeg is given the format, as it knows some that open other files or addresses.
    """
    if head[4:8] in ATOMS:
        return "mov"
    if head.startswith(EBML):
        return "matroska"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:  # the sync word of ADTS; layer 0, unlike MP3
        return "aac"
    return None


def announced_seconds(container: Any, stream: Any) -> float:
    """Read how many seconds a stream has; 0 where the file does not say, or only of all its streams together."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return (container.duration or 0) / 1e6 if len(container.streams) == 1 else 0.0


def matroska_bytes(head: bytes) -> int | None:
    """Read how many bytes a Matroska or WebM file has from its first ones; None where they do not say.

    Where there is a video as well, its stream of audio does not say how long it is.
    """
    place, size = element_size(head, len(EBML))
    place += size
    if not head.startswith(EBML) or head[place : place + len(SEGMENT)] != SEGMENT:
        return None
    place, size = element_size(head, place + len(SEGMENT))
    return place + size if size else None


def element_size(head: bytes, place: int) -> tuple[int, int]:
    """Read the size of an element of Matroska (RFC 8794, section 4): where its content begins, and its bytes.

    They are 0 where the size is unknown, as in what a browser records.
    """
    width = 9 - head[place].bit_length() if len(head) > place else 9
    digits = head[place : place + width]
    unknown = (1 << 7 * width) - 1
    size = int.from_bytes(digits) & unknown
    return place + width, 0 if len(digits) < width or size == unknown else size


def damaged(error: Any) -> InputError:
    return InputError(f"it is damaged or cut off ({getattr(error, 'strerror', None) or error}); save it again")


@contextmanager
def opened_container(source: bytes | Path, kind: str) -> Iterator[Any]:
    library = pyav()
    try:
        with library.open(BytesIO(source) if isinstance(source, bytes) else str(source), format=kind) as container:
            yield container
    except (library.error.FFmpegError, OSError, ValueError, IndexError) as error:
        raise damaged(error) from error


class ContainerSound:
    """The audio of a container, read like an open file of soundfile: block by block, from its beginning."""

    frames = UNKNOWN_LENGTH  # containers say their length in rounded seconds

    def __init__(self, source: bytes | Path, kind: str) -> None:
        self._opening = opened_container(source, kind)
        self._container = self._opening.__enter__()
        self.closed = False
        if not self._container.streams.audio:
            self.close()
            raise InputError("it has no sound: it is a video without an audio track")
        stream = self._container.streams.audio[0]
        self.samplerate, self.channels = int(stream.rate or 0), int(stream.channels)
        self._decoded = self._blocks()
        self._left = np.zeros((0, self.channels), np.float32)
        self._announced = announced_seconds(self._container, stream)

    def read(self, count: int, dtype: str = "float32", always_2d: bool = True) -> Float32[np.ndarray, "N C"]:
        """Read the next samples, at most `count`; fewer at the end."""
        del dtype, always_2d  # as soundfile's, which reads other forms as well
        # FFmpeg gives blocks of any length; what is too much is kept for the next call.
        parts, size = [self._left], len(self._left)
        while size < count and (block := next(self._decoded, None)) is not None:
            parts.append(block)
            size += len(block)
        joined = np.concatenate(parts)
        self._left = joined[count:]
        return joined[:count]

    def _blocks(self) -> Iterator[Float32[np.ndarray, "N C"]]:
        library = pyav()
        resampler = library.AudioResampler(format="fltp", rate=self.samplerate)
        count = 0
        try:
            for frame in self._container.decode(audio=0):
                for part in resampler.resample(frame):
                    samples = part.to_ndarray().T.astype(np.float32)
                    count += len(samples)
                    yield samples
        except (library.error.FFmpegError, ValueError) as error:
            raise damaged(error) from error

        # PyAV does not notice that a file ends early.
        if self._announced - count / self.samplerate > MISSING:
            there, announced = count / self.samplerate, self._announced
            raise InputError(f"it is cut off: {there:,.1f} of {announced:,.1f} seconds are there; save it again")

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._opening.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pyav() -> Any:
    try:
        import av
        import av.error
        import av.logging
    except ImportError as error:
        raise InputError(EXTRA) from error
    av.logging.set_level(None)  # what FFmpeg says of damage is in the error
    return av


def container_frames(
    content: bytes, kind: str, max_pixels: int, choose: Callable[[int], Sequence[int]]
) -> list[np.ndarray]:
    """Decode some frames of a video as RGB pixels (H W 3) of 8 bits, turned as the camera says.

    `choose` gives the numbers of the frames, in order, by the number of all; or raises an InputError.
    """
    # Packets are counted first: most hold a frame, and nothing is decoded for that.
    with opened_container(content, kind) as container:
        if not container.streams.video:
            raise InputError("it has no frames: it is a sound without a video track")
        stream = container.streams.video[0]
        if stream.width * stream.height > max_pixels:
            raise InputError(
                f"it has {stream.width:,} x {stream.height:,} pixels, more than max_pixels = {max_pixels:,}; make it "
                "smaller, or raise that limit"
            )
        packets = sum(packet.size > 0 for packet in container.demux(stream))
    frames, count = decoded_frames(content, kind, choose(packets))
    if count < packets:  # some packets hold no frame of their own
        frames, _ = decoded_frames(content, kind, choose(count))
    return frames


def decoded_frames(content: bytes, kind: str, numbers: Sequence[int]) -> tuple[list[np.ndarray], int]:
    """Decode a video; return the frames of some numbers, and how many there are."""
    selection, frames, count, end = set(numbers), {}, 0, 0.0
    with opened_container(content, kind) as container:
        stream = container.streams.video[0]
        lasts = 1 / float(stream.average_rate or 1)
        announced = announced_seconds(container, stream)
        for frame in container.decode(video=0):
            if count in selection:
                frames[count] = np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90))
            count += 1
            end = max(end, (frame.time or 0.0) + lasts)
    if not count:
        raise InputError("it is damaged or cut off: it holds no frames; save it again")
    if announced - end > MISSING + lasts:
        raise InputError(f"it is cut off: {end:,.1f} of {announced:,.1f} seconds are there; save it again")
    last = max(frames)
    return [frames.get(number, frames[last]) for number in numbers], count
