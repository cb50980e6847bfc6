"""Audio input layers, which map frames of samples, or of a log-mel spectrum, to vectors.

B batch, N frames, M features of a frame, S positions of the stack, D model.
"""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.modalities import AudioConfig
from heedful.nn.embedding import InputLayer


class LinearFrames(InputLayer):
    """Audio input layer with a linear map of each frame."""

    def __init__(self, config: AudioConfig, d_model: int) -> None:
        super().__init__()
        self.project = nn.Linear(config.width, d_model)

    def embed(
        self, inputs: Float[Tensor, "B N M"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B N D"], Bool[Tensor, "B N"]]:
        return self.project(inputs.to(self.project.weight.dtype)), padding_mask


class ConvolutionalFrames(InputLayer):
    """Whisper's input layer: two convolutions over three frames each, with GELU (Radford et al. 2022, section 2.2).

    The second one has stride 2, so there are half as many positions as frames, rounded up.
    """

    def __init__(self, config: AudioConfig, d_model: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(config.width, d_model, 3, padding=1)
        self.second = nn.Conv1d(d_model, d_model, 3, stride=2, padding=1)

    def embed(
        self, inputs: Float[Tensor, "B N M"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        # Padding is set to 0 before each convolution, whose kernel also covers padding at the end of the audio.
        padding = ~padding_mask[:, None, :]
        # torch's convolutions expect channels before time: B N M to B M N.
        frames = inputs.transpose(1, 2).to(self.first.weight.dtype).masked_fill(padding, 0.0)
        hidden = F.gelu(self.first(frames)).masked_fill(padding, 0.0)
        # A position is real if the middle one of its three frames is.
        return F.gelu(self.second(hidden)).transpose(1, 2), padding_mask[:, ::2]


STEMS: dict[str, Callable[[AudioConfig, int], InputLayer]] = {
    "linear": LinearFrames,
    "convolutional": ConvolutionalFrames,
}


def frame_embedding(config: AudioConfig, d_model: int) -> InputLayer:
    return STEMS[config.stem](config, d_model)
