"""Input layer of audio: frames of samples or of a log-mel spectrum, one vector each or one for two.

B batch, N frames, M features of a frame, S positions of the stack, D model.
"""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.modalities import AudioConfig
from heedful.nn.embedding import InputLayer


class LinearFrames(InputLayer):
    """Input layer of audio: a linear map of each frame."""

    def __init__(self, config: AudioConfig, d_model: int) -> None:
        super().__init__()
        self.project = nn.Linear(config.width, d_model)

    def embed(
        self, inputs: Float[Tensor, "B N M"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B N D"], Bool[Tensor, "B N"]]:
        return self.project(inputs.to(self.project.weight.dtype)), padding_mask


class ConvolutionalFrames(InputLayer):
    """Input layer of Whisper: two convolutions over three frames with GELU, the second with stride 2.

    Radford et al. (2022, section 2.2). So there are half as many positions as frames, rounded up.
    """

    def __init__(self, config: AudioConfig, d_model: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(config.width, d_model, 3, padding=1)
        self.second = nn.Conv1d(d_model, d_model, 3, stride=2, padding=1)

    def embed(
        self, inputs: Float[Tensor, "B N M"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn frames into vectors of pairs of frames; padding is set to zero before each convolution."""
        # torch's convolutions take B M N. A kernel at the end of the audio would otherwise read its padding.
        padding = ~padding_mask[:, None, :]
        frames = inputs.transpose(1, 2).to(self.first.weight.dtype).masked_fill(padding, 0.0)
        hidden = F.gelu(self.first(frames)).masked_fill(padding, 0.0)
        # A position is real if the middle one of its three frames is.
        return F.gelu(self.second(hidden)).transpose(1, 2), padding_mask[:, ::2]


STEMS: dict[str, Callable[[AudioConfig, int], InputLayer]] = {
    "linear": LinearFrames,
    "convolutional": ConvolutionalFrames,
}


def frame_embedding(config: AudioConfig, d_model: int) -> InputLayer:
    """Create the input layer of audio whose stem the settings name."""
    return STEMS[config.stem](config, d_model)
