"""Recordings of any length, read piece by piece: the samples of a file, of bytes or of an array.

N samples of one channel, at the rate of the settings.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import ceil, gcd
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config.modalities import AudioConfig
from heedful.data.resampling import CROSSINGS, ROLLOFF, Samples, resampled
from heedful.data.sounds import FASTEST, checked, soundfile
from heedful.errors import InputError

Sound = str | PathLike[str] | bytes | np.ndarray | torch.Tensor  # what is taken for a recording


class Recording(ABC):
    """Base class of recordings: samples of one channel, of which any part can be read.

    Attributes:
        name: the name of the recording in messages.
        rate: its samples a second, those of the settings.
        length: its number of samples.
    """

    name: str
    rate: int
    length: int

    @property
    def seconds(self) -> float:
        """Length of the recording in seconds."""
        return self.length / self.rate

    @abstractmethod
    def read(self, begin: int, end: int) -> Samples:
        """Read the samples from `begin` on and before `end`, which may be beyond the end of the recording.

        Raises:
            InputError: the recording is cut off or damaged, or some samples are no numbers.
        """


class ArrayRecording(Recording):
    """Recording in memory: an array or a tensor of samples, mostly from -1 to 1, at the rate of the settings."""

    def __init__(self, samples: np.ndarray | torch.Tensor, config: AudioConfig) -> None:
        self.name = "the recording"
        self.rate = config.rate
        self._samples = checked(as_samples(samples))
        self.length = len(self._samples)

    def read(self, begin: int, end: int) -> Samples:
        """Return a part of the array."""
        return self._samples[begin:end]


class FileRecording(Recording):
    """Recording in a file or its bytes: only what is asked for is read, resampled, and its channels averaged.

    What is read in pieces is what is read as a whole: a piece is resampled with the samples around it.
    """

    def __init__(self, source: Path | bytes, config: AudioConfig) -> None:
        self.name = str(source) if isinstance(source, Path) else "the recording"
        self.rate = config.rate
        self._source = source
        with self._opened() as sound:
            self._rate, self._frames = sound.samplerate, sound.frames
        if not self._frames:
            raise InputError(f"{self.name}: it has no samples")
        common = gcd(self._rate, self.rate)
        self._steps, self._phases = self._rate // common, self.rate // common  # samples of a period, in and out
        self.length = ceil(self._frames * self._phases / self._steps)

    def read(self, begin: int, end: int) -> Samples:
        """Read a part of the file: whole periods of the resampling that hold it, and those around them."""
        begin, end = min(begin, self.length), min(end, self.length)
        around = ceil(CROSSINGS * max(1.0, self._steps / self._phases) / ROLLOFF / self._steps)
        first = max(0, begin // self._phases - around)
        last = ceil(end / self._phases) + around
        piece = self._read_channels(first * self._steps, min(self._frames, last * self._steps))
        samples = resampled(piece, self._rate, self.rate)
        skipped = first * self._phases
        return samples[begin - skipped : end - skipped]

    def _read_channels(self, begin: int, end: int) -> Samples:
        with self._opened() as sound:
            sound.seek(begin)
            samples = sound.read(end - begin, dtype="float32", always_2d=True)
        if len(samples) < end - begin:
            raise InputError(
                f"{self.name}: it is cut off: {begin + len(samples):,} of {self._frames:,} samples are there"
            )
        try:
            return checked(samples.mean(axis=1))
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        library = soundfile()
        try:
            with library.SoundFile(BytesIO(self._source) if isinstance(self._source, bytes) else self._source) as sound:
                if not 0 < sound.samplerate <= FASTEST:
                    raise InputError(f"{self.name}: it has {sound.samplerate:,} samples a second: it is damaged")
                yield sound
        except library.LibsndfileError as error:
            raise InputError(
                f"{self.name}: it is no sound, damaged, or of a kind that is not read ({error.error_string})"
            ) from error


def recording_of(sound: Sound, config: AudioConfig) -> Recording:
    """Open a recording: a file by its name, the bytes of one, or an array of samples at the rate of the settings.

    Raises:
        InputError: there is no such file, it is no sound, or the array holds no samples of one channel.
    """
    if isinstance(sound, np.ndarray | torch.Tensor):
        return ArrayRecording(sound, config)
    if isinstance(sound, bytes):
        return FileRecording(sound, config)
    if not isinstance(sound, str | PathLike):
        raise InputError(
            f"{type(sound).__name__} is no recording; give the name of a file, its bytes, or an array of samples"
        )
    path = Path(fspath(sound))
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; name a file of sound")
    return FileRecording(path, config)


def as_samples(given: np.ndarray | torch.Tensor) -> Samples:
    """Return an array or tensor of floating-point samples of one channel as float32.

    Raises:
        InputError: it has several dimensions, or whole numbers.
    """
    samples = given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else given
    if samples.ndim != 1:
        raise InputError(f"an array of samples has one dimension, not {samples.ndim}; average the channels first")
    if not np.issubdtype(samples.dtype, np.floating):
        raise InputError(
            f"samples are numbers from -1 to 1, not of type {samples.dtype}; divide them by the largest of that type"
        )
    return np.ascontiguousarray(samples, dtype=np.float32)
