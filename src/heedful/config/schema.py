"""Recipe schema: all configuration keys as frozen, typed dataclasses of plain values; importing it does not load torch.

A recipe is one TOML file whose tables are the fields of `Recipe`; `heedful config schema` prints this schema as JSON
Schema. Each field declares its own range, description and other facts: see `heedful.config.setting`.
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
    VariantConfig,
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
from heedful.config.setting import Fixed, SeparatelyValidated, Setting
from heedful.config.training import (
    EvaluateConfig,
    LoraConfig,
    OptimizerConfig,
    ParallelConfig,
    Shardings,
    TrainConfig,
)

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
    "LoraConfig",
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
    "VariantConfig",
    "VideoConfig",
]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recipe of a run: all settings that `heedful train` reads. The resolved recipe is stored with the model."""

    name: Annotated[str, Setting(resume="free")] = "heedful"
    """Name of the run, and of its default folder in `runs`."""

    task: Annotated[str, Setting(resume=Fixed("the weights learned so far belong to the old task"))] = "translation"
    """Task: a built-in one, or your own class as `module:Class`."""

    data: Annotated[DataConfig, Setting(resume=ORDER)] = field(default_factory=DataConfig)
    """Data settings."""

    tokenizer: Annotated[TokenizerConfig, Setting(resume=Fixed("the token ids would change"))] = field(
        default_factory=TokenizerConfig
    )
    """Tokenizer settings."""

    image: ImageConfig = field(default_factory=ImageConfig)
    """Image settings."""

    video: VideoConfig = field(default_factory=VideoConfig)
    """Video settings."""

    audio: AudioConfig = field(default_factory=AudioConfig)
    """Audio settings."""

    masking: Annotated[MaskingConfig, Setting(resume=ORDER)] = field(default_factory=MaskingConfig)
    """Settings for masked language models and masked patches."""

    model: Annotated[
        ModelConfig,
        Setting(resume=Fixed("the weights learned so far belong to the old model")),
        SeparatelyValidated(),
    ] = field(default_factory=ModelConfig)
    """Model settings; each architecture has its own class, which extends `ArchitectureConfig`."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """Optimizer and learning-rate schedule settings."""

    train: TrainConfig = field(default_factory=TrainConfig)
    """Training loop settings."""

    parallel: Annotated[ParallelConfig, Setting(resume="free")] = field(default_factory=ParallelConfig)
    """Settings for training in several processes."""

    decode: DecodeConfig = field(default_factory=DecodeConfig)
    """Beam search settings."""

    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    """Settings of validation and test scores."""

    generate: Annotated[GenerateConfig, Setting(resume="free")] = field(default_factory=GenerateConfig)
    """Text generation settings."""

    transcribe: TranscribeConfig = field(default_factory=TranscribeConfig)
    """Speech transcription settings."""

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
