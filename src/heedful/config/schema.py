"""Schema of recipes: every configuration key as frozen, typed dataclasses of plain values, without torch.

A recipe is one TOML file whose tables are the fields of `Recipe`; `heedful config schema` prints the same as JSON
Schema. Each field says its range, description and other facts itself: see `heedful.config.setting`.
"""

from dataclasses import dataclass, field
from typing import Annotated

from heedful.config.data import (
    ORDER,
    CorpusConfig,
    DataConfig,
    FilterConfig,
    MaskingConfig,
    Modality,
    TokenizerConfig,
)
from heedful.config.decoding import EXTRA, DecodeConfig, GenerateConfig
from heedful.config.modalities import AudioConfig, ImageConfig, TranscribeConfig, VideoConfig
from heedful.config.model import (
    ArchitectureConfig,
    ModelConfig,
    Poolers,
    Poolings,
    TextModelConfig,
    TransformerSettings,
)
from heedful.config.setting import Apart, Fixed, Setting
from heedful.config.training import EvaluateConfig, OptimizerConfig, ParallelConfig, Shardings, TrainConfig

__all__ = [
    "EXTRA",
    "ArchitectureConfig",
    "AudioConfig",
    "CorpusConfig",
    "DataConfig",
    "DecodeConfig",
    "EvaluateConfig",
    "FilterConfig",
    "GenerateConfig",
    "ImageConfig",
    "MaskingConfig",
    "Modality",
    "ModelConfig",
    "OptimizerConfig",
    "ParallelConfig",
    "Poolers",
    "Poolings",
    "Recipe",
    "Shardings",
    "TextModelConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TranscribeConfig",
    "TransformerSettings",
    "VideoConfig",
]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recipe of a run: all settings that `heedful train` reads, and that are stored, resolved, with the model."""

    name: Annotated[str, Setting(resume="free")] = "heedful"
    """Name of the run, for people."""

    task: Annotated[str, Setting(resume=Fixed("the model would learn something else"))] = "translation"
    """Task: one that comes with heedful, or a class of yours as `module:Class`."""

    data: Annotated[DataConfig, Setting(resume=ORDER)] = field(default_factory=DataConfig)
    """Settings of the data."""

    tokenizer: Annotated[TokenizerConfig, Setting(resume=Fixed("the ids of the tokens would be others"))] = field(
        default_factory=TokenizerConfig
    )
    """Settings of the tokenizer."""

    image: ImageConfig = field(default_factory=ImageConfig)
    """Settings of images."""

    video: VideoConfig = field(default_factory=VideoConfig)
    """Settings of videos."""

    audio: AudioConfig = field(default_factory=AudioConfig)
    """Settings of audio."""

    masking: Annotated[MaskingConfig, Setting(resume=ORDER)] = field(default_factory=MaskingConfig)
    """Settings of masked language models and masked patches."""

    model: Annotated[
        ModelConfig, Setting(resume=Fixed("the weights that are learned so far are of the old model")), Apart()
    ] = field(default_factory=ModelConfig)
    """Settings of the model; those of another architecture have another class that extends `ArchitectureConfig`."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """Settings of the optimiser and the learning-rate schedule."""

    train: TrainConfig = field(default_factory=TrainConfig)
    """Settings of the training loop."""

    parallel: Annotated[ParallelConfig, Setting(resume="free")] = field(default_factory=ParallelConfig)
    """Settings of training in several processes."""

    decode: DecodeConfig = field(default_factory=DecodeConfig)
    """Settings of beam search."""

    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    """Settings of the scores of validation and of tests."""

    generate: Annotated[GenerateConfig, Setting(resume="free")] = field(default_factory=GenerateConfig)
    """Settings of text generation."""

    transcribe: TranscribeConfig = field(default_factory=TranscribeConfig)
    """Settings of speech transcription."""

    @property
    def longest_input(self) -> int:
        """Number of positions of the longest input that the model reads: tokens, patches, frames or tubelets."""
        lengths = {
            "text": self.data.max_length,
            "image": self.image.tokens,
            "audio": self.audio.longest,
            "video": self.video.tokens(self.video.frames, self.image),
        }
        return lengths[self.data.modality]
