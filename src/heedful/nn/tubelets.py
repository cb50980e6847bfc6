"""Input layer of videos: cuts them into tubelets, patches that last some frames (Arnab et al. 2021, section 3.2).

B batch, T frames, K tubelets one behind the other in time, H height, W width, C channels, P patches of a frame,
S positions of the stack, D model.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.nn.patches import STD, PatchEmbedding, without_padding
from heedful.nn.positions import sinusoids


def stacked(frames: Float[Tensor, "B T H W C"], tubelet: int) -> Float[Tensor, "B K H W C2"]:
    """Stack the channels of each `tubelet` frames, so that a patch of the stack is a tubelet of the frames."""
    return frames.unflatten(1, (-1, tubelet)).permute(0, 1, 3, 4, 2, 5).flatten(4)


class SinusoidalTimes(nn.Module):
    """Sinusoidal positions in time: all tubelets that begin with the same frame get the same vector."""

    table: Float[Tensor, "K D"]

    def __init__(self, config: VideoConfig, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(config.frames // config.tubelet, d_model), persistent=False)

    def forward(self, x: Float[Tensor, "B K P D"]) -> Float[Tensor, "B K P D"]:
        """Add the vector of its time to each tubelet."""
        return x + self.table[: x.size(1), None].to(x.dtype)


class LearnedTimes(nn.Module):
    """Learned positions in time: one trained vector for all tubelets that begin with the same frame."""

    def __init__(self, config: VideoConfig, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.normal_(torch.empty(config.frames // config.tubelet, d_model), std=STD))

    def forward(self, x: Float[Tensor, "B K P D"]) -> Float[Tensor, "B K P D"]:
        """Add the vector of its time to each tubelet."""
        return x + self.table[: x.size(1), None]


TIMES: dict[str, Callable[[VideoConfig, int], nn.Module]] = {
    "none": nn.Identity,
    "sinusoidal": SinusoidalTimes,
    "learned": LearnedTimes,
}


class TubeletEmbedding(PatchEmbedding):
    """Input layer of videos: a vector for each tubelet, those of the first frames first, behind a class token.

    A video comes as T frames of H x W pixels with C channels, a whole number of tubelets. Frames at its end may be
    padding; a tubelet is padding if its first frame is. Stem, positions of rows and columns, and class token are those
    of pictures: a tubelet is a patch whose channels are those of several frames.
    """

    def __init__(self, video: VideoConfig, image: ImageConfig, d_model: int) -> None:
        super().__init__(replace(image, channels=image.channels * video.tubelet), d_model)
        self.tubelet = video.tubelet
        self.times = TIMES[video.positions](video, d_model)

    def embed(
        self, inputs: Float[Tensor, "B T H W C"], padding_mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn videos into the vectors of their tubelets."""
        frames = stacked(without_padding(inputs.to(self.class_token.dtype), padding_mask), self.tubelet)
        pictures = frames.flatten(0, 1)
        all_rows = pictures.new_ones(pictures.shape[:2], dtype=torch.bool)
        patches = self.positions(self.stem(pictures, all_rows)).flatten(1, 2)
        tubelets = self.times(patches.unflatten(0, frames.shape[:2]))
        real = padding_mask[:, :: self.tubelet].repeat_interleave(tubelets.size(2), dim=1)
        return self.behind_class_token(tubelets.flatten(1, 2), real)
