"""Readers of audio of any length, which read pieces of a file, of its bytes or of an array.

N samples of one channel, at the configured rate.
"""

from abc import ABC, abstractmethod
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
    clear_errors,
    frames_of,
    open_audio,
    resampled,
    valid_samples,
)
from heedful.storage.paths import no_file

AudioSource = str | PathLike[str] | bytes | BufferedIOBase | np.ndarray | torch.Tensor


class AudioReader(ABC):
    """Base class of audio readers, which can read any part of the samples of one channel.

    Attributes:
        name: Name of the audio in messages.
        rate: Samples per second, as configured.
        length: Number of samples.
    """

    name: str
    rate: int
    length: int

    @property
    def seconds(self) -> float:
        return self.length / self.rate

    @abstractmethod
    def read(self, begin: int, end: int) -> Samples:
        """Read the samples from `begin` up to but not including `end`, which may be beyond the end of the audio."""


class ArrayAudioReader(AudioReader):
    """Reader of an array or a tensor of samples, mostly from -1 to 1, at the configured rate."""

    def __init__(self, samples: np.ndarray | torch.Tensor, config: AudioConfig) -> None:
        self.name = "the audio"
        self.rate = config.rate
        values = samples.detach().cpu().numpy() if isinstance(samples, torch.Tensor) else samples
        self._samples = as_samples(values, config.rate)
        self.length = len(self._samples)

    def read(self, begin: int, end: int) -> Samples:
        return self._samples[begin:end]


class FileAudioReader(AudioReader):
    """Reader of an audio file or its bytes: only the requested part is read, mixed to one channel and resampled.

    Reading in pieces gives the same samples as reading everything: a piece is resampled with the samples around it. The
    file is read from its beginning, because not every format can be decoded from the middle (an MP3 would then give
    different samples). The last piece is buffered.
    """

    def __init__(self, source: Path | bytes, config: AudioConfig, *, truncated: bool = False) -> None:
        self.name = str(source) if isinstance(source, Path) else "the audio"
        self.rate = config.rate
        self._source, self._truncated = source, truncated
        with clear_errors(self.name), open_audio(source, truncated=truncated) as audio:
            self._rate, self._frames = audio.samplerate, frames_of(audio, source, truncated=truncated)
        if not self._frames:
            raise InputError(f"{self.name}: it has no samples")
        common = gcd(self._rate, self.rate)
        self._steps, self._phases = self._rate // common, self.rate // common  # input and output samples in a period
        self.length = ceil(self._frames * self._phases / self._steps)
        self._channel = config.channel
        self._file: Any = None
        self._close()

    def read(self, begin: int, end: int) -> Samples:
        begin, end = min(begin, self.length), min(end, self.length)
        # Read whole periods of the resampling, and the periods around them, so that a piece has the phases of the file.
        reach = CROSSINGS * max(1.0, self._steps / self._phases) / ROLLOFF  # samples on either side of an output
        around = ceil(reach / self._steps) if self._rate != self.rate else 0
        first = max(0, begin // self._phases - around)
        last = ceil(end / self._phases) + around
        piece = self._piece(first * self._steps, min(self._frames, last * self._steps))
        with clear_errors(self.name):
            samples = resampled(valid_samples(piece), self._rate, self.rate)
        # Input sample first * steps is at the time of output first * phases.
        start = first * self._phases
        return samples[begin - start : end - start]

    def check(self) -> None:
        """Read the file to its end, which reveals damage in seconds instead of after hours of transcription."""
        try:
            for begin in range(0, self._frames, BLOCK):
                piece = self._piece(begin, min(begin + BLOCK, self._frames))
                with clear_errors(self.name):
                    valid_samples(piece)
        finally:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._first = self._last = 0  # the range of samples of the file that is in the buffer
        self._buffer: Samples = np.zeros(0, np.float32)
        self._mixer = ChannelMixer(self._channel)

    def _piece(self, begin: int, end: int) -> Samples:
        """Read a part of the file at its original rate, from the buffer and from what follows it in the file."""
        if begin < self._first:  # start again from the beginning of the file
            self._close()
        with clear_errors(self.name):
            if self._file is None:
                self._file = open_audio(self._source, truncated=self._truncated)
            while self._last < end:
                size = min(BLOCK, end - self._last)
                block = self._file.read(size, dtype="float32", always_2d=True)
                # A file that ends early would otherwise give an endless loop of empty blocks.
                if len(block) < size:
                    check_count(self._last + len(block), self._frames)
                mono = self._mixer.mix(block)
                # Only the end shows whether channels cancel each other: a passage may be silent in all of them.
                if self._last + len(block) == self._frames:
                    self._mixer.check()
                # Samples before the piece are dropped, so that memory does not grow with the length of the file.
                self._buffer = np.concatenate([self._buffer[max(0, begin - self._first) :], mono])
                self._last += len(block)
                self._first = self._last - len(self._buffer)
        return self._buffer[begin - self._first : end - self._first]


def audio_reader(source: object, config: AudioConfig, *, truncated: bool = False) -> AudioReader:
    """Return a reader for a file given by name, for a file's bytes, or for an array of samples."""
    if isinstance(source, np.ndarray | torch.Tensor):
        return ArrayAudioReader(source, config)
    if isinstance(source, BufferedIOBase):
        source = source.read()
    if not isinstance(source, str | PathLike | bytes):
        raise InputError(
            f"{type(source).__name__} is not audio; give a file name, the bytes of a file, or an array of samples"
        )
    if not isinstance(source, bytes):
        source = Path(fspath(source))
        if not source.is_file():
            raise InputError(no_file(source, "give an audio file"))
    return FileAudioReader(source, config, truncated=truncated)
