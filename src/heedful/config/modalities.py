"""Settings for inputs other than text: images and videos, cut into patches, and audio, cut into frames."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.setting import Count, Natural, Positive, PositiveShare, Rate, Share

Side = Annotated[int, Ge(1), Le(10_000)]


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """Image settings: how images are resized, augmented and cut into patches (Dosovitskiy et al. 2021)."""

    size: tuple[Side, Side] = (224, 224)
    """Height and width in pixels to which every image is resized."""

    resize: Literal["crop", "squash", "pad"] = "crop"
    """Resizing of images with a different aspect ratio: `crop` cuts out the middle, `squash` distorts the image, and
    `pad` adds black borders."""

    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bicubic"
    """Resampling filter."""

    channels: Literal[1, 3] = 3
    """Number of channels: 3 for RGB, 1 for grey."""

    patch: Count = 16
    """Height and width of a patch in pixels."""

    stem: Literal["linear", "convolutional", "pooled"] = "linear"
    """Layers that embed patches: `linear` is a linear map, `convolutional` 3 x 3 convolutions with stride 2, and
    `pooled` 3 x 3 convolutions with max-pooling."""

    class_token: bool = True
    """If `true`, a trained vector precedes the patches. Without it, set `model.pooling = "mean"`."""

    positions: Literal["none", "sinusoidal", "learned"] = "none"
    """Encoding of rows and columns, in addition to `model.positions`."""

    max_pixels: Count = 89_478_485
    """Maximum number of pixels of an image file. A larger image is rejected before it is decompressed."""

    shift: Natural = 0
    """Augmentation: maximum random shift in each direction, in pixels."""

    flip: bool = False
    """Augmentation: mirror half of the images horizontally."""

    zoom: PositiveShare = 1.0
    """Augmentation: crop a random region of at least this share of the area."""

    trivial_augment: bool = False
    """Augmentation: one random change of geometry or colour for each image (Müller & Hutter 2021)."""

    erase: Share = 0.0
    """Augmentation: probability that a random rectangle is erased (Zhong et al. 2020)."""

    mixup: Annotated[float, Ge(0), Le(4)] = 0.0
    """Augmentation: mix two images and their classes, with weights from Beta(`mixup`, `mixup`) (Zhang et al. 2018)."""

    mean: tuple[float, ...] = (0.5,)
    """Mean of the pixels on a scale from 0 to 1: one number, or one for each channel."""

    std: tuple[Positive, ...] = (0.5,)
    """Standard deviation of the pixels: the model reads (pixel - `mean`) / `std`."""

    @property
    def grid(self) -> tuple[int, int]:
        return self.size[0] // self.patch, self.size[1] // self.patch

    @property
    def tokens(self) -> int:
        """Number of positions that an image has in the stack: its patches, and the class token if there is one."""
        rows, columns = self.grid
        return rows * columns + self.class_token


@dataclass(frozen=True, kw_only=True)
class VideoConfig:
    """Video settings: how frames, which have the settings of [image], are cut into tubelets (Arnab et al. 2021)."""

    frames: Side = 16
    """Number of frames to read from a video, evenly spaced from beginning to end. A shorter video is read in full."""

    tubelet: Count = 2
    """Number of frames in a tubelet, whose height and width are `image.patch`. With 1, tubelets are patches of single
    frames."""

    positions: Literal["none", "sinusoidal", "learned"] = "none"
    """Encoding of time, in addition to `image.positions` and `model.positions`."""

    max_frames: Count = 3000
    """Maximum number of frames of a video file. A longer video is rejected before it is decompressed."""

    def read(self, frames: int) -> int:
        """Return how many frames are read from a video of `frames` frames.

        The number is rounded up to whole tubelets, but is at most `self.frames`.
        """
        return min(self.frames, -(-frames // self.tubelet) * self.tubelet)

    def tokens(self, frames: int, image: ImageConfig) -> int:
        """Return the number of positions of `frames` frames in the stack: one for each tubelet and any class token."""
        rows, columns = image.grid
        return frames // self.tubelet * rows * columns + image.class_token


@dataclass(frozen=True, kw_only=True)
class AudioConfig:
    """Audio settings: how audio is resampled, augmented and cut into frames (Radford et al. 2022, section 2.2)."""

    rate: Annotated[int, Ge(1), Le(768_000)] = 16_000
    """Sampling rate in Hz. Audio with a different rate is resampled."""

    channel: Count | None = field(default=None, repr=False)
    """Channel to read from each file, counted from 1. Not set: the mean of all channels."""

    features: Literal["log_mel", "samples"] = "log_mel"
    """Features of a frame: its log-mel spectrum, or the samples themselves."""

    window: Annotated[int, Ge(2), Le(768_000)] = 400
    """Window of the spectrum in samples; not used with `features = "samples"`, where a frame has `hop` samples."""

    hop: Count = 160
    """Distance between frames in samples."""

    mels: Side = 80
    """Number of mel bands."""

    stem: Literal["linear", "convolutional"] = "convolutional"
    """Layers that embed frames. `convolutional` uses those of Whisper, which halve the number of frames."""

    pad_seconds: Annotated[float, Ge(0), Le(3600)] = 0.0
    """Length in seconds to which shorter clips are padded with silence. Whisper: 30."""

    max_seconds: Annotated[Positive, Le(36_000)] = 30.0
    """Maximum length of a clip in seconds. In training, a longer clip is rejected; in use, it is split into parts."""

    speed: Rate = 0.0
    """Augmentation: maximum random change of speed and pitch, as a share (Ko et al. 2015)."""

    time_masks: Natural = 0
    """Augmentation: number of spans of frames that are masked (SpecAugment, Park et al. 2019)."""

    time_mask: Share = 0.2
    """Maximum length of a masked span, as a share of the frames."""

    frequency_masks: Natural = 0
    """Augmentation: number of ranges of mel bands that are masked."""

    frequency_mask: Share = 0.2
    """Maximum size of a masked range of mel bands, as a share of the bands."""

    @property
    def width(self) -> int:
        return self.mels if self.features == "log_mel" else self.hop

    @property
    def stride(self) -> int:
        """Number of frames for each position in the stack."""
        return 2 if self.stem == "convolutional" else 1

    def frames(self, samples: int) -> int:
        """Return the number of frames of a clip, padding included: one for each whole hop, and at least one."""
        return max(1, max(samples, round(self.pad_seconds * self.rate)) // self.hop)

    def tokens(self, samples: int) -> int:
        """Return the number of positions that a clip has in the stack."""
        return -(-self.frames(samples) // self.stride)

    @property
    def longest(self) -> int:
        """Number of positions that the longest accepted clip has in the stack."""
        return self.tokens(round(self.max_seconds * self.rate))


@dataclass(frozen=True, kw_only=True)
class TranscribeConfig:
    """Speech transcription settings. A converted Whisper model sets most of them (Radford et al. 2022)."""

    languages: tuple[str, ...] = ()
    """ISO 639 codes of the languages that the model distinguishes. Empty: only `data.target_language`."""

    language: str | None = None
    """ISO 639 code of the language of the speech, such as `de`. Not set: the model detects it in each audio file."""

    task: Literal["transcribe", "translate"] = "transcribe"
    """`translate` outputs English, whatever the language of the speech, if the model supports it."""

    initial_prompt: str = ""
    """Text to use as if it preceded each window of the audio, to show how names are spelt, if the model supports it."""

    timestamps: Literal["always", "long", "never"] = "always"
    """When to generate timestamps, if the model supports them. `long`: for audio longer than a window of the model."""

    suppress: tuple[Natural, ...] = ()
    """Token ids that are never generated, such as the ids of musical notes."""

    suppress_first: tuple[Natural, ...] = ()
    """Token ids with which the output for a window never begins."""

    no_speech: Share = 0.6
    """Probability of silence above which an unlikely text is dropped (section 4.5)."""

    word_timestamps: bool = False
    """Derive the time of each word from the model's cross-attention."""

    alignment_heads: tuple[Natural, ...] = ()
    """Cross-attention heads that align words, numbered across all decoder layers. Empty: all heads of the upper half
    of the decoder."""

    vad: bool = False
    """Detect speech (voice activity detection), and transcribe nothing else. Converted Whisper models have it on."""

    overlap: Rate = 0.15
    """Overlap of consecutive windows when timestamps are off, as a share of a window."""
