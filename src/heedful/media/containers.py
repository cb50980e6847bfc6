"""Audio and video files from phones, cameras and browsers (M4A, MP4, MOV, WebM, Matroska, AAC, 3GP, AVI), with PyAV.

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
from heedful.wording import counted

AUDIO_ENDINGS = (".m4a", ".m4b", ".aac", ".mp4", ".m4v", ".mov", ".3gp", ".webm", ".weba", ".mka", ".mkv", ".avi")
VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".3gp", ".webm", ".mkv", ".avi")
ATOMS = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")  # names of the first part of MP4 and QuickTime files
MISSING = 0.25  # seconds by which a file may be shorter than announced: numbers are rounded, and audio may start late
EBML, SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"  # the first two elements of Matroska and WebM
HEAD = 12  # bytes from which the format is recognised
UNKNOWN_LENGTH = 2**63 - 1  # libsndfile's number of samples for a file that does not announce its length
EXTRA = "M4A, MP4, MOV, WebM, Matroska, AAC and AVI need PyAV, which is not installed: pip install 'heedful[media]'"


def container_format(head: bytes) -> str | None:
    """Return FFmpeg's name of a format, given the first twelve bytes of a file; None for formats of other readers.

    FFmpeg is not allowed to guess the format itself, because some of its formats open other files or URLs.
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
    """Return the announced length of a stream in seconds; 0 if none, or only that of several streams, is announced."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return (container.duration or 0) / 1e6 if len(container.streams) == 1 else 0.0


def matroska_bytes(head: bytes) -> int | None:
    """Return the number of bytes that the header of a Matroska or WebM file announces; None if it announces none.

    This reveals a file that is cut off even if its audio stream has no length, as in a file with video.
    """
    offset, size = element_size(head, len(EBML))
    offset += size
    if not head.startswith(EBML) or head[offset : offset + len(SEGMENT)] != SEGMENT:
        return None
    offset, size = element_size(head, offset + len(SEGMENT))
    return offset + size if size else None


def element_size(head: bytes, offset: int) -> tuple[int, int]:
    """Read the size of a Matroska element at an offset (RFC 8794, section 4).

    Returns the offset of its content, and its number of bytes, which is 0 if the size is unknown, as in files recorded
    by a browser.
    """
    # The position of the first 1 in the first byte is the number of bytes. The bits after it are the size, which
    # is unknown if all are 1.
    width = 9 - head[offset].bit_length() if len(head) > offset else 9
    digits = head[offset : offset + width]
    unknown = (1 << 7 * width) - 1
    size = int.from_bytes(digits) & unknown
    return offset + width, 0 if len(digits) < width or size == unknown else size


@contextmanager
def reported_damage() -> Iterator[None]:
    """Turn PyAV's exceptions about a damaged file into an InputError."""
    try:
        yield
    except (pyav().error.FFmpegError, OSError, ValueError, IndexError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"it is damaged or cut off ({problem}); save it again") from error


@contextmanager
def opened_container(source: bytes | Path, kind: str) -> Iterator[Any]:
    file = BytesIO(source) if isinstance(source, bytes) else str(source)
    with reported_damage(), pyav().open(file, format=kind) as container:
        yield container


class ContainerAudio:
    """Audio track of a container, with the interface of a soundfile.SoundFile: read block by block, from the start."""

    frames = UNKNOWN_LENGTH  # containers announce their length only in rounded seconds

    def __init__(self, source: bytes | Path, kind: str) -> None:
        # Entered without `with`, because the file stays open until `close`.
        self._opening = opened_container(source, kind)
        self._container = self._opening.__enter__()
        self.closed = False
        if not self._container.streams.audio:
            self.close()
            raise InputError("it has no audio: it is a video without an audio track")
        stream = self._container.streams.audio[0]
        self.samplerate, self.channels = int(stream.rate or 0), int(stream.channels)
        self._decoded = self._blocks()
        self._surplus = np.zeros((0, self.channels), np.float32)
        self._announced = announced_seconds(self._container, stream)

    def read(self, count: int, dtype: str = "float32", always_2d: bool = True) -> Float32[np.ndarray, "N C"]:
        """Read the next `count` samples, or fewer at the end."""
        del dtype, always_2d  # parameters of soundfile, which also supports other values
        # FFmpeg returns blocks of any length; the surplus is kept for the next call.
        parts, size = [self._surplus], len(self._surplus)
        while size < count and (block := next(self._decoded, None)) is not None:
            parts.append(block)
            size += len(block)
        samples = np.concatenate(parts)
        self._surplus = samples[count:]
        return samples[:count]

    def _blocks(self) -> Iterator[Float32[np.ndarray, "N C"]]:
        resampler = pyav().AudioResampler(format="fltp", rate=self.samplerate)
        count = 0
        with reported_damage():
            for frame in self._container.decode(audio=0):
                for part in resampler.resample(frame):
                    # (C, N) -> (N, C), as soundfile returns them.
                    samples = part.to_ndarray().T.astype(np.float32)
                    count += len(samples)
                    yield samples
        check_seconds(count / self.samplerate, self._announced, MISSING)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._opening.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_seconds(seconds: float, announced: float, tolerance: float) -> None:
    """Check that a stream has the length that it announces: PyAV does not report a file that ends early."""
    if announced - seconds > tolerance:
        raise InputError(f"it is cut off: it has {seconds:,.1f} of {announced:,.1f} seconds; save it again")


def pyav() -> Any:
    try:
        import av
        import av.error
        import av.logging
    except ImportError as error:
        raise InputError(EXTRA) from error
    av.logging.set_level(None)  # not printed: FFmpeg's message about damage is in the exception
    return av


def container_frames(
    content: bytes, kind: str, max_pixels: int, choose: Callable[[int], Sequence[int]]
) -> list[np.ndarray]:
    """Decode some frames of a video as 8-bit RGB pixels (H W 3), turned upright.

    Args:
        choose: Returns the indices of the frames to decode, in order, given the total number of frames.
    """
    # Packets are counted first, without decoding: most contain one frame.
    with opened_container(content, kind) as container:
        if not container.streams.video:
            raise InputError("it has no frames: it is an audio file without a video track")
        stream = container.streams.video[0]
        if stream.width * stream.height > max_pixels:
            raise InputError(
                f"it has {stream.width:,} x {stream.height:,} pixels, more than max_pixels = {max_pixels:,}; make it "
                "smaller, or raise that limit"
            )
        packets = sum(packet.size > 0 for packet in container.demux(stream))
    frames, count = decoded_frames(content, kind, choose(packets))
    if count < packets:  # some packets do not contain a frame
        frames, _ = decoded_frames(content, kind, choose(count))
    return frames


def decoded_frames(content: bytes, kind: str, numbers: Sequence[int]) -> tuple[list[np.ndarray], int]:
    """Decode a video; return the frames with the indices `numbers`, and the total number of frames."""
    selection, frames, count, end = set(numbers), {}, 0, 0.0
    with opened_container(content, kind) as container:
        stream = container.streams.video[0]
        duration = 1 / float(stream.average_rate or 1)  # duration of a frame in seconds
        announced = announced_seconds(container, stream)
        for frame in container.decode(video=0):
            if count in selection:
                frames[count] = np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90))
            count += 1
            end = max(end, (frame.time or 0.0) + duration)
    if not frames:
        raise InputError(f"it is damaged or cut off: it contains {counted(count, 'frames')}; save it again")
    check_seconds(end, announced, MISSING + duration)
    # A packet may contain no frame: an index beyond the last frame stands for the last one.
    last = max(frames)
    return [frames.get(number, frames[last]) for number in numbers], count
