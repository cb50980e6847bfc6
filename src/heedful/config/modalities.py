"""Settings of inputs that are no text: pictures and videos, cut into patches, and sound, cut into frames."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """Settings of pictures: how they are resized, augmented and cut into patches (Dosovitskiy et al. 2021)."""

    size: tuple[int, int] = (224, 224)  # height and width in pixels that every picture is brought to
    resize: Literal["crop", "squash", "pad"] = "crop"  # crop: the middle; squash: change the ratio; pad: with black
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bicubic"  # the filter that resizes
    channels: Literal[1, 3] = 3  # 1: grey
    patch: int = 16  # side of a square patch, in pixels
    stem: Literal["linear", "convolutional", "pooled"] = "linear"  # 3 x 3 convolutions: with stride 2, or max-pooling
    class_token: bool = True  # a trained vector before the patches; without it set model.pooling = "mean"
    positions: Literal["none", "sinusoidal", "learned"] = "none"  # of rows and of columns; beside model.positions
    max_pixels: int = 89_478_485  # a larger picture is refused before it is unpacked
    shift: int = 0  # augmentation: move by up to so many pixels in each direction
    flip: bool = False  # augmentation: mirror half of the pictures
    zoom: float = 1.0  # augmentation: cut out a part of at least this share of the area
    trivial_augment: bool = False  # augmentation: one change of form or colour at random (Müller & Hutter 2021)
    erase: float = 0.0  # augmentation: erase a rectangle of this probability (Zhong et al. 2020)
    mixup: float = 0.0  # augmentation: mix two pictures and classes, shares from Beta(mixup, mixup) (Zhang et al. 2018)
    mean: tuple[float, ...] = (0.5,)  # of the pixels, from 0 to 1: one number, or one for each channel
    std: tuple[float, ...] = (0.5,)  # pixels are read as (pixel - mean) / std

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.size[0] // self.patch, self.size[1] // self.patch

    @property
    def tokens(self) -> int:
        """Number of positions of a picture in the stack: its patches, and the class token if there is one."""
        rows, columns = self.grid
        return rows * columns + self.class_token


@dataclass(frozen=True, kw_only=True)
class VideoConfig:
    """Settings of videos: frames, which are pictures as [image] says, cut into tubelets (Arnab et al. 2021)."""

    frames: int = 16  # that are read of a video, evenly from its beginning to its end; of a shorter one all
    tubelet: int = 2  # frames of a tubelet, whose height and width are image.patch; 1: patches of single frames
    positions: Literal["none", "sinusoidal", "learned"] = "none"  # in time; beside image.positions, model.positions
    max_frames: int = 3000  # a video of more frames is refused before it is unpacked

    def read(self, frames: int) -> int:
        """Number of frames that are read of a video with so many: whole tubelets, at most the `frames` set."""
        return min(self.frames, -(-frames // self.tubelet) * self.tubelet)

    def tokens(self, frames: int, image: ImageConfig) -> int:
        """Number of positions of so many frames in the stack: their tubelets, and the class token if there is one."""
        rows, columns = image.grid
        return frames // self.tubelet * rows * columns + image.class_token


@dataclass(frozen=True, kw_only=True)
class AudioConfig:
    """Settings of sound: how it is resampled, augmented and cut into frames (Radford et al. 2022, section 2.2)."""

    rate: int = 16_000  # samples a second; sound of another rate is resampled
    channel: int | None = field(default=None, repr=False)  # of each file, from 1; None: the mean of all channels
    features: Literal["log_mel", "samples"] = "log_mel"  # of a frame: log-mel spectrum, or the samples as they are
    window: int = 400  # samples of a frame that the spectrum is computed from; frames of samples have hop samples
    hop: int = 160  # samples from one frame to the next
    mels: int = 80  # bands of the mel scale
    stem: Literal["linear", "convolutional"] = "convolutional"  # convolutional: Whisper's, which halves the frames
    pad_seconds: float = 0.0  # shorter clips are padded with silence to this length; Whisper: 30
    max_seconds: float = 30.0  # a longer clip is refused
    speed: float = 0.0  # augmentation: play faster or slower by up to this share (Ko et al. 2015)
    time_masks: int = 0  # augmentation: spans of frames that are masked (SpecAugment, Park et al. 2019)
    time_mask: float = 0.2  # their largest length, as a share of the frames
    frequency_masks: int = 0  # augmentation: ranges of mel bands that are masked
    frequency_mask: float = 0.2  # their largest height, as a share of the bands

    @property
    def width(self) -> int:
        """Number of features of a frame."""
        return self.mels if self.features == "log_mel" else self.hop

    @property
    def stride(self) -> int:
        """Number of frames for each position in the stack."""
        return 2 if self.stem == "convolutional" else 1

    def frames(self, samples: int) -> int:
        """Number of frames of a clip with so many samples: one for each whole hop, and at least one."""
        return max(1, max(samples, round(self.pad_seconds * self.rate)) // self.hop)

    def tokens(self, samples: int) -> int:
        """Number of positions of a clip with so many samples in the stack."""
        return -(-self.frames(samples) // self.stride)

    @property
    def longest(self) -> int:
        """Number of positions of the longest clip that is read, in the stack."""
        return self.tokens(round(self.max_seconds * self.rate))


@dataclass(frozen=True, kw_only=True)
class TranscribeConfig:
    """Settings of the transcription of speech, of which most come with a converted Whisper (Radford et al. 2022)."""

    languages: tuple[str, ...] = ()  # that the model tells apart; none: it writes one, data.target_language
    language: str | None = None  # of the speech, one of `languages`; None: the model finds it in each recording
    task: Literal["transcribe", "translate"] = "transcribe"  # translate: into English, if the model can
    initial_prompt: str = ""  # text that might come before a recording, for names and spelling, if the model reads it
    timestamps: Literal["always", "long", "never"] = "always"  # if there are any; long: in long recordings
    suppress: tuple[int, ...] = ()  # ids of tokens that are never written, such as musical notes
    suppress_first: tuple[int, ...] = ()  # ids of tokens that a window does not begin with
    no_speech: float = 0.6  # probability of silence from which an unlikely text is left out (section 4.5)
    vad: bool = False  # detect speech, and read nothing else; a converted Whisper: true
    overlap: float = 0.15  # without time stamps: share of a window that it has in common with the one before
