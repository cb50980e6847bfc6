"""Recordings of any length, read piece by piece: the samples of a file, of bytes or of an array.

N samples of one channel, at the rate of the settings.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from math import ceil, gcd
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config.modalities import AudioConfig
from heedful.errors import InputError
from heedful.media.audio import (
    BLOCK,
    CROSSINGS,
    ROLLOFF,
    ChannelMixer,
    Samples,
    as_samples,
    check_count,
    checked,
    frames_of,
    open_sound,
    resampled,
    soundfile,
    unreadable,
)
from heedful.media.foreign_messages import without_foreign_messages
from heedful.storage.paths import no_file

Sound = str | PathLike[str] | bytes | BufferedIOBase | np.ndarray | torch.Tensor  # what is taken for a recording


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
        return self.length / self.rate

    @abstractmethod
    def read(self, begin: int, end: int) -> Samples:
        """Read the samples from `begin` on and before `end`, which may be beyond the end of the recording."""


class ArrayRecording(Recording):
    """Recording in memory: an array or a tensor of samples, mostly from -1 to 1, at the rate of the settings."""

    def __init__(self, samples: np.ndarray | torch.Tensor, config: AudioConfig) -> None:
        self.name = "the recording"
        self.rate = config.rate
        values = samples.detach().cpu().numpy() if isinstance(samples, torch.Tensor) else samples
        self._samples = as_samples(values, config.rate)
        self.length = len(self._samples)

    def read(self, begin: int, end: int) -> Samples:
        return self._samples[begin:end]


class FileRecording(Recording):
    """Recording in a file or its bytes: only what is asked for is read, resampled, and its channels made into one.

    What is read in pieces is what is read as a whole: a piece is resampled with the samples around it. The file is read
    from its beginning on, as not every kind can be entered in the middle (of an MP3 other samples come then), and what
    was read last is kept.
    """

    def __init__(self, source: Path | bytes, config: AudioConfig, *, truncated: bool = False) -> None:
        self.name = str(source) if isinstance(source, Path) else "the recording"
        self.rate = config.rate
        self._source, self._truncated = source, truncated
        sound = self._opened()
        with sound, self._naming():
            self._rate, self._frames = sound.samplerate, frames_of(sound, source, truncated=truncated)
        if not self._frames:
            raise InputError(f"{self.name}: it has no samples")
        common = gcd(self._rate, self.rate)
        self._steps, self._phases = self._rate // common, self.rate // common  # samples of a period, in and out
        self.length = ceil(self._frames * self._phases / self._steps)
        self._sound: Any = None  # opened, and read as far as `_last`
        self._first = self._last = 0  # of what is kept
        self._kept: Samples = np.zeros(0, np.float32)
        self._channel = config.channel
        self._mixer = ChannelMixer(config.channel)

    def read(self, begin: int, end: int) -> Samples:
        """Read a part of the file: whole periods of the resampling that hold it, and those around them."""
        begin, end = min(begin, self.length), min(end, self.length)
        # Whole periods of the resampling, so that a piece has the same phases as the whole.
        reach = CROSSINGS * max(1.0, self._steps / self._phases) / ROLLOFF  # samples on either side of one
        around = ceil(reach / self._steps) if self._rate != self.rate else 0
        first = max(0, begin // self._phases - around)
        last = ceil(end / self._phases) + around
        piece = self._piece(first * self._steps, min(self._frames, last * self._steps))
        with self._naming():
            samples = resampled(checked(piece), self._rate, self.rate)
        skipped = first * self._phases
        return samples[begin - skipped : end - skipped]

    def check(self) -> None:
        """Read the file to its end, which takes seconds where a transcript takes hours."""
        try:
            for begin in range(0, self._frames, BLOCK):
                piece = self._piece(begin, min(begin + BLOCK, self._frames))
                with self._naming():
                    checked(piece)
        finally:
            self._close()

    def _close(self) -> None:
        if self._sound is not None:
            self._sound.close()
        self._sound = None
        self._first = self._last = 0
        self._kept = np.zeros(0, np.float32)
        self._mixer = ChannelMixer(self._channel)

    def _piece(self, begin: int, end: int) -> Samples:
        """Read a part of the file at its own rate, from what is kept and from the file behind it."""
        # What comes before can be read from the beginning of the file only.
        if begin < self._first:
            self._close()
        if self._sound is None:
            self._sound = self._opened()
        while self._last < end:
            block = self._block(min(BLOCK, end - self._last))
            before = self._kept[max(0, begin - self._first) :]
            self._kept = np.concatenate([before, block])
            self._last += len(block)
            self._first = self._last - len(self._kept)
        return self._kept[begin - self._first : end - self._first]

    def _block(self, count: int) -> Samples:
        try:
            with without_foreign_messages():
                samples = self._sound.read(count, dtype="float32", always_2d=True)
        except soundfile().LibsndfileError as error:
            raise InputError(f"{self.name}: {unreadable(error)}") from error
        with self._naming():
            if len(samples) < count:
                check_count(self._last + len(samples), self._frames)
            mixed = self._mixer.mix(samples)
            if self._last + len(samples) == self._frames:
                self._mixer.check()
        return mixed

    def _opened(self) -> Any:
        with self._naming():
            return open_sound(self._source, truncated=self._truncated)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Put the name of the file before the message of an error, and leave out those of libraries."""
        try:
            with without_foreign_messages():
                yield
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error


def recording_of(sound: object, config: AudioConfig, *, truncated: bool = False) -> Recording:
    """Open a recording: a file by its name, the bytes of one, or an array of samples at the rate of the settings."""
    if isinstance(sound, np.ndarray | torch.Tensor):
        return ArrayRecording(sound, config)
    if isinstance(sound, BufferedIOBase):
        sound = sound.read()
    if isinstance(sound, bytes):
        return FileRecording(sound, config, truncated=truncated)
    if not isinstance(sound, str | PathLike):
        raise InputError(
            f"{type(sound).__name__} is no recording; give the name of a file, its bytes, or an array of samples"
        )
    return file_recording(Path(fspath(sound)), config, truncated=truncated)


def file_recording(path: Path, config: AudioConfig, *, truncated: bool = False) -> FileRecording:
    if not path.is_file():
        raise InputError(no_file(path, "name a file of sound"))
    return FileRecording(path, config, truncated=truncated)
