"""Images, audio clips and videos as a model reads them: decoded from files, augmented, and put together in batches.

B batch, N rows of pixels or frames, F features of a row, H height, W width, C channels, T frames, M features of a
frame of audio.
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
from heedful.media.audio import from_samples, is_silent, read_sound, resampled
from heedful.media.image_augmentation import augmented
from heedful.media.images import from_pixels, read_picture
from heedful.media.log_mel import log_mel, masked
from heedful.media.videos import from_frames, read_video
from heedful.random_numbers import KeyedGenerator

MAX_SECONDS = 36_000.0  # seconds of an audio clip that is read in parts


class Modality(ABC):
    """Base class of what is neither text nor numbers: how files become inputs of a model."""

    endings: ClassVar[tuple[str, ...]]  # of the names of files
    noun: ClassVar[str]  # the name of one file's content in messages
    window: ClassVar[int] = 256  # how many a predictor decodes at a time
    mixup: float = 0.0  # strength of mixup; 0: none

    @abstractmethod
    def read(self, content: bytes) -> np.ndarray:
        """Decode the bytes of a file, at the size or rate of the settings."""

    @abstractmethod
    def from_array(self, values: np.ndarray) -> np.ndarray:
        """Turn an array of a user, pixels of 8 bits or samples, into what `read` makes of a file with them."""

    def read_parts(self, content: bytes) -> list[np.ndarray]:
        """Decode the bytes of a file of any length, cut into parts that the model reads; most files are one part."""
        return [self.read(content)]

    def parts_of_array(self, values: np.ndarray) -> list[np.ndarray]:
        """Turn an array of a user into what `read_parts` makes of a file with them."""
        return [self.from_array(values)]

    def is_silent(self, decoded: np.ndarray) -> bool:
        """True if what was decoded is audio in which nothing can be heard."""
        return False

    @abstractmethod
    def tokens(self, decoded: np.ndarray) -> int:
        """Number of positions in the stack of what was decoded."""

    @abstractmethod
    def features(self, decoded: np.ndarray) -> Float32[Tensor, "N ..."]:
        """Turn what was decoded into the rows that the input layer reads."""

    @abstractmethod
    def augmented(self, decoded: np.ndarray, chance: KeyedGenerator) -> Float32[Tensor, "N ..."]:
        """Turn what was decoded into rows as `features`, changed at random; the same chance gives the same rows."""


class Images(Modality):
    """Images: pixels (H W C) of 8 bits, which a model reads as numbers around 0."""

    endings = images.ENDINGS
    noun = "picture"

    def __init__(self, config: ImageConfig, *, truncated: bool = False) -> None:
        self.config = config
        self.truncated = truncated
        self.mixup = config.mixup
        self.mean, self.std = torch.tensor(config.mean), torch.tensor(config.std)

    def read(self, content: bytes) -> np.ndarray:
        return read_picture(content, self.config, truncated=self.truncated)

    def from_array(self, values: np.ndarray) -> np.ndarray:
        return from_pixels(values, self.config)

    def tokens(self, decoded: np.ndarray) -> int:
        """Number of patches, and the class token if there is one: the same for every image."""
        return self.config.tokens

    def features(self, decoded: np.ndarray) -> Float32[Tensor, "*T H W C"]:
        """Scale pixels to (pixel - mean) / std, where a pixel is from 0 to 1."""
        return (torch.from_numpy(decoded.astype(np.float32)) / 255 - self.mean) / self.std

    def pixels(self, features: Float32[Tensor, "B H W C"]) -> UInt8[np.ndarray, "B H W C"]:
        """Scale rows that the model reads, or that it wrote, back to pixels: undo `features`."""
        return ((features.cpu() * self.std + self.mean) * 255).round().clamp(0, 255).to(torch.uint8).numpy()

    def augmented(self, decoded: np.ndarray, chance: KeyedGenerator) -> Float32[Tensor, "*T H W C"]:
        return self.features(augmented(decoded, self.config, chance))


class Videos(Images):
    """Videos: frames (T H W C) of 8 bits, each of them an image; what augments one does the same to all."""

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

    def augmented(self, decoded: np.ndarray, chance: KeyedGenerator) -> Float32[Tensor, "T H W C"]:
        """Change all frames alike, then scale: to augment a frame is to augment its channels."""
        frames, height, width, channels = decoded.shape
        # (T H W C) to (H W T C): to change the frames alike is to change their channels.
        stacked = decoded.transpose(1, 2, 0, 3).reshape(height, width, -1)
        changed = augmented(stacked, self.config, chance).reshape(height, width, frames, channels)
        return self.features(changed.transpose(2, 0, 1, 3))


class AudioClips(Modality):
    """Audio clips: samples of one channel, which a model reads as frames of a log-mel spectrum or of samples."""

    endings = audio.ENDINGS
    noun = "sound"

    def __init__(self, config: AudioConfig, *, truncated: bool = False) -> None:
        self.config = config
        self.truncated = truncated

    def read(self, content: bytes) -> np.ndarray:
        return read_sound(content, self.config, truncated=self.truncated)

    def from_array(self, values: np.ndarray) -> np.ndarray:
        return from_samples(values, self.config)

    def read_parts(self, content: bytes) -> list[np.ndarray]:
        """Decode the bytes of an audio file; one that is longer than `max_seconds` is cut into parts of that length."""
        return self._parts(read_sound(content, replace(self.config, max_seconds=MAX_SECONDS), truncated=self.truncated))

    def parts_of_array(self, values: np.ndarray) -> list[np.ndarray]:
        return self._parts(from_samples(values, replace(self.config, max_seconds=MAX_SECONDS)))

    def is_silent(self, decoded: np.ndarray) -> bool:
        return is_silent(decoded)

    def _parts(self, samples: np.ndarray) -> list[np.ndarray]:
        """Cut samples into as few parts of `max_seconds` as hold them all, at equal distances."""
        length = max(1, int(self.config.max_seconds * self.config.rate))
        if len(samples) <= length:
            return [samples]
        begins = np.linspace(0, len(samples) - length, -(-len(samples) // length)).round().astype(int).tolist()
        return [samples[begin : begin + length] for begin in begins]

    def tokens(self, decoded: np.ndarray) -> int:
        """Number of frames, halved by a convolutional stem."""
        return self.config.tokens(len(decoded))

    def features(self, decoded: np.ndarray) -> Float32[Tensor, "T M"]:
        frames = log_mel if self.config.features == "log_mel" else sample_frames
        return frames(torch.tensor(decoded), self.config)

    def augmented(self, decoded: np.ndarray, chance: KeyedGenerator) -> Float32[Tensor, "T M"]:
        """Change the speed and mask frames and bands as the settings say; what grows too long is cut."""
        if self.config.speed:
            # Resampled as if the rate were another, so that speed and pitch change together.
            percent = max(1, round(100 * chance.between(1 - self.config.speed, 1 + self.config.speed)))
            decoded = resampled(decoded, percent, 100)[: round(self.config.max_seconds * self.config.rate)]
        return masked(self.features(decoded), self.config, chance)


def sample_frames(samples: Float32[Tensor, " N"], config: AudioConfig) -> Float32[Tensor, "T M"]:
    """Cut a clip into frames of `config.hop` samples; what is left behind the last whole frame is not read."""
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
    """Put the rows of several examples into one batch, padded at the end; return it with its padding mask."""
    lengths = torch.tensor([len(example) for example in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True), mask
