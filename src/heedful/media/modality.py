"""Images, audio clips and videos as inputs of a model: decoded from files, augmented, and padded to batches.

B batch, N rows of pixels or frames, F features of a row, H height, W width, C channels, T frames, M features of an
audio frame.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32, UInt8
from torch import Tensor

from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import Recipe
from heedful.media import audio, images, videos
from heedful.media.audio import from_samples, is_silent, read_audio, resampled
from heedful.media.image_augmentation import augmented
from heedful.media.images import from_pixels, read_image
from heedful.media.log_mel import log_mel, masked
from heedful.media.videos import from_frames, read_video
from heedful.random_numbers import KeyedGenerator

MAX_SECONDS = 36_000.0  # maximum length of an audio file that is split into parts


class Modality(ABC):
    """Base class of modalities: how files become inputs of a model.

    Attributes:
        endings: File extensions.
        noun: Name of one file in messages.
        window: Number of files that a predictor decodes at a time.
        mixup: Strength of mixup, 0 for none.
    """

    endings: ClassVar[tuple[str, ...]]
    noun: ClassVar[str]
    window: ClassVar[int] = 256
    mixup: float = 0.0

    @abstractmethod
    def read(self, content: bytes) -> np.ndarray:
        """Decode the bytes of a file, and resize or resample it according to the settings."""

    @abstractmethod
    def from_array(self, values: np.ndarray) -> np.ndarray:
        """Convert 8-bit pixels or samples to what `read` returns for a file that contains them."""

    def read_parts(self, content: bytes) -> list[np.ndarray]:
        """Decode the bytes of a file of any length, split into parts that fit the model; most files are one part."""
        return [self.read(content)]

    def parts_of_array(self, values: np.ndarray) -> list[np.ndarray]:
        """Convert 8-bit pixels or samples to what `read_parts` returns for a file that contains them."""
        return [self.from_array(values)]

    def is_silent(self, decoded: np.ndarray) -> bool:
        """Return True if the input is inaudible audio."""
        return False

    @abstractmethod
    def tokens(self, decoded: np.ndarray) -> int:
        """Return the number of positions that decoded pixels or samples have in the stack of layers."""

    @abstractmethod
    def features(self, decoded: np.ndarray) -> Float32[Tensor, "N ..."]:
        """Convert decoded pixels or samples to the rows that the input layer reads."""

    @abstractmethod
    def augmented(self, decoded: np.ndarray, generator: KeyedGenerator) -> Float32[Tensor, "N ..."]:
        """Return augmented `features`; the same generator gives the same rows."""


class Images(Modality):
    """Images: 8-bit pixels (H W C), which a model reads normalised."""

    endings = images.ENDINGS
    noun = "image"

    def __init__(self, config: ImageConfig, *, truncated: bool = False) -> None:
        self.config = config
        self.truncated = truncated
        self.mixup = config.mixup
        self.mean, self.std = torch.tensor(config.mean), torch.tensor(config.std)

    def read(self, content: bytes) -> np.ndarray:
        return read_image(content, self.config, truncated=self.truncated)

    def from_array(self, values: np.ndarray) -> np.ndarray:
        return from_pixels(values, self.config)

    def tokens(self, decoded: np.ndarray) -> int:
        return self.config.tokens

    def features(self, decoded: np.ndarray) -> Float32[Tensor, "*T H W C"]:
        """Normalise pixels: (pixel / 255 - mean) / std."""
        return (torch.from_numpy(decoded.astype(np.float32)) / 255 - self.mean) / self.std

    def pixels(self, features: Float32[Tensor, "B H W C"]) -> UInt8[np.ndarray, "B H W C"]:
        """Convert inputs or outputs of a model back to pixels: the inverse of `features`."""
        return ((features.cpu() * self.std + self.mean) * 255).round().clamp(0, 255).to(torch.uint8).numpy()

    def augmented(self, decoded: np.ndarray, generator: KeyedGenerator) -> Float32[Tensor, "*T H W C"]:
        return self.features(augmented(decoded, self.config, generator))


class Videos(Images):
    """Videos: 8-bit frames (T H W C), all augmented in the same way."""

    endings = videos.ENDINGS
    noun = "video"
    window = 16

    def __init__(self, config: ImageConfig, video: VideoConfig) -> None:
        super().__init__(config)
        self.video = video

    def read(self, content: bytes) -> np.ndarray:
        return read_video(content, self.video, self.config)

    def from_array(self, values: np.ndarray) -> np.ndarray:
        return from_frames(values, self.video, self.config)

    def tokens(self, decoded: np.ndarray) -> int:
        return self.video.tokens(len(decoded), self.config)

    def augmented(self, decoded: np.ndarray, generator: KeyedGenerator) -> Float32[Tensor, "T H W C"]:
        frames, height, width, channels = decoded.shape
        # (T H W C) -> (H W T*C): frames become channels of an image, which are all augmented in the same way.
        stack = decoded.transpose(1, 2, 0, 3).reshape(height, width, -1)
        # One call for all frames samples one change for all of them: separate changes would destroy the motion.
        result = augmented(stack, self.config, generator).reshape(height, width, frames, channels)
        return self.features(result.transpose(2, 0, 1, 3))


class AudioClips(Modality):
    """Audio clips: samples of one channel, which a model reads as log-mel frames or as frames of samples."""

    endings = audio.ENDINGS
    noun = "audio file"

    def __init__(self, config: AudioConfig, *, truncated: bool = False) -> None:
        self.config = config
        self.truncated = truncated

    def read(self, content: bytes) -> np.ndarray:
        return read_audio(content, self.config, truncated=self.truncated)

    def from_array(self, values: np.ndarray) -> np.ndarray:
        return from_samples(values, self.config)

    def read_parts(self, content: bytes) -> list[np.ndarray]:
        """Decode an audio file; split it into parts of `max_seconds` if it is longer."""
        return self._parts(read_audio(content, replace(self.config, max_seconds=MAX_SECONDS), truncated=self.truncated))

    def parts_of_array(self, values: np.ndarray) -> list[np.ndarray]:
        return self._parts(from_samples(values, replace(self.config, max_seconds=MAX_SECONDS)))

    def is_silent(self, decoded: np.ndarray) -> bool:
        return is_silent(decoded)

    def _parts(self, samples: np.ndarray) -> list[np.ndarray]:
        """Split samples into the fewest evenly spaced parts of `max_seconds` that cover them."""
        length = max(1, int(self.config.max_seconds * self.config.rate))
        if len(samples) <= length:
            return [samples]
        # Overlapping parts of full length: without overlap, the last part could be too short to recognise anything.
        begins = np.linspace(0, len(samples) - length, -(-len(samples) // length)).round().astype(int).tolist()
        return [samples[begin : begin + length] for begin in begins]

    def tokens(self, decoded: np.ndarray) -> int:
        return self.config.tokens(len(decoded))

    def features(self, decoded: np.ndarray) -> Float32[Tensor, "T M"]:
        frames = log_mel if self.config.features == "log_mel" else sample_frames
        return frames(torch.tensor(decoded), self.config)

    def augmented(self, decoded: np.ndarray, generator: KeyedGenerator) -> Float32[Tensor, "T M"]:
        """Change the speed and mask frames and bands, as the settings specify; truncate clips that become too long."""
        if self.config.speed:
            # Resampled as if from a different rate, so that speed and pitch change together. Whole percentages keep the
            # number of phases, and with it the resampling kernel, small.
            percent = max(1, round(100 * generator.between(1 - self.config.speed, 1 + self.config.speed)))
            decoded = resampled(decoded, percent, 100)[: round(self.config.max_seconds * self.config.rate)]
        return masked(self.features(decoded), self.config, generator)


def sample_frames(samples: Float32[Tensor, " N"], config: AudioConfig) -> Float32[Tensor, "T M"]:
    """Split a clip into whole frames of `config.hop` samples, dropping the rest; a shorter clip is padded to one."""
    frames = config.frames(len(samples))
    samples = F.pad(samples, (0, max(0, frames * config.hop - len(samples))))
    return samples[: frames * config.hop].unflatten(0, (frames, config.hop))


MODALITIES: dict[str, Callable[[Recipe], Modality]] = {  # by `data.modality`
    "image": lambda recipe: Images(recipe.image, truncated=recipe.data.truncated_files == "read"),
    "audio": lambda recipe: AudioClips(recipe.audio, truncated=recipe.data.truncated_files == "read"),
    "video": lambda recipe: Videos(recipe.image, recipe.video),
}


def modality_of(recipe: Recipe) -> Modality:
    return MODALITIES[recipe.data.modality](recipe)


def padded(rows: Sequence[Float32[Tensor, "N ..."]]) -> tuple[Float32[Tensor, "B N *F"], Bool[Tensor, "B N"]]:
    """Stack the rows of several examples, padded at the end; return them with their padding mask."""
    lengths = torch.tensor([len(example) for example in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True), mask
