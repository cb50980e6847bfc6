"""Input layers of images and videos: square patches (Dosovitskiy et al. 2021, section 3.1), and tubelets of patches.

A tubelet is a patch that lasts some frames (Arnab et al. 2021, section 3.2).

B batch, H height, W width, C channels, R rows and Q columns of patches, F pixels of a patch, P patches of a frame,
T frames, K tubelets in time, S positions of the stack, D model.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.nn.embedding import InputLayer
from heedful.nn.positions import sinusoids

STD = 0.02  # standard deviation of new vectors, as in BERT


def cut(pixels: Float[Tensor, "B H W C"], patch: int) -> Float[Tensor, "B R Q F"]:
    """Cut images into R rows and Q columns of square patches: the F pixels of each row by row, channels last."""
    # B (R patch) (Q patch) C to B R patch Q patch C, to B R Q patch patch C, to B R Q F.
    rows, columns = pixels.size(1) // patch, pixels.size(2) // patch
    return pixels.unflatten(2, (columns, patch)).unflatten(1, (rows, patch)).transpose(2, 3).flatten(3)


def joined(patches: Float[Tensor, "B R Q F"], patch: int) -> Float[Tensor, "B H W C"]:
    """Put the patches that `cut` made of images together again."""
    pixels = patches.unflatten(3, (patch, patch, -1)).transpose(2, 3)
    return pixels.flatten(3, 4).flatten(1, 2)


def without_padding(inputs: Float[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N *F"]:
    """Set padding among N rows of pixels or N frames to 0, which is what convolutions see beyond a border."""
    padding = ~padding_mask.view(*padding_mask.shape, *[1] * (inputs.dim() - 2))
    return inputs.masked_fill(padding, 0.0)


class LinearStem(nn.Module):
    """Stem of the Vision Transformer: a linear map of the pixels of each patch, row by row, channels last.

    This is a convolution whose kernel and stride are the side of a patch.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        self.patch = config.patch
        self.project = nn.Linear(config.channels * config.patch**2, d_model)

    def forward(self, pixels: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]) -> Float[Tensor, "B R Q D"]:
        return self.project(cut(without_padding(pixels, padding_mask), self.patch))


class ConvolutionalStem(nn.Module):
    """Stem of 3 x 3 convolutions with stride 2, each with GELU, and a linear map (Xiao et al. 2021, section 4).

    Each convolution halves height and width, and has twice as many channels as the one before. There are no batch
    norms, so that an image does not depend on the others in its batch.
    """

    stride = 2

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        halvings = config.patch.bit_length() - 1
        # Channels double up to d_model, as height and width halve.
        widths = [config.channels, *(max(1, d_model >> (halvings - 1 - step)) for step in range(halvings))]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, 3, stride=self.stride, padding=1) for before, after in pairwise(widths)
        )
        self.project = nn.Linear(widths[-1], d_model)

    def forward(self, pixels: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]) -> Float[Tensor, "B R Q D"]:
        x = pixels  # B H W C, while torch's convolutions take B C H W
        for convolution in self.convolutions:
            # Padding is cleared before each convolution, as the one before has written something into it.
            x = without_padding(x, padding_mask).permute(0, 3, 1, 2)
            x = self.halved(x, convolution).permute(0, 2, 3, 1)
            padding_mask = padding_mask[:, ::2]
        return self.project(x)

    def halved(self, x: Float[Tensor, "B C H W"], convolution: nn.Module) -> Float[Tensor, "B D R Q"]:
        return nn.functional.gelu(convolution(x))


class PooledStem(ConvolutionalStem):
    """Stem of 3 x 3 convolutions, each with GELU and max-pooling, and a linear map (Hassani et al. 2021).

    The convolutions are computed at every pixel and not at every other one; pooling halves height and width.
    """

    stride = 1

    def halved(self, x: Float[Tensor, "B C H W"], convolution: nn.Module) -> Float[Tensor, "B D R Q"]:
        return nn.functional.max_pool2d(super().halved(x, convolution), 3, stride=2, padding=1)


class SinusoidalGridPositions(nn.Module):
    """Sinusoidal positions in two dimensions: half of each vector is of the row, the other half of the column."""

    table: Float[Tensor, "R Q D"]

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        rows, columns = config.grid
        half = d_model // 2  # d_model is a multiple of four: sines and cosines come in pairs
        by_row = sinusoids(rows, half)[:, None].expand(-1, columns, -1)
        by_column = sinusoids(columns, half)[None].expand(rows, -1, -1)
        # R Q D, computed again when a model is loaded, and not stored.
        self.register_buffer("table", torch.cat([by_row, by_column], dim=-1), persistent=False)

    def forward(self, x: Float[Tensor, "B R Q D"]) -> Float[Tensor, "B R Q D"]:
        return x + self.table[: x.size(1)].to(x.dtype)


class LearnedGridPositions(nn.Module):
    """Learned positions in two dimensions: one trained vector for each row, and one for each column."""

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        rows, columns = config.grid
        self.rows = nn.Parameter(nn.init.normal_(torch.empty(rows, d_model), std=STD))
        self.columns = nn.Parameter(nn.init.normal_(torch.empty(columns, d_model), std=STD))

    def forward(self, x: Float[Tensor, "B R Q D"]) -> Float[Tensor, "B R Q D"]:
        return x + self.rows[: x.size(1), None] + self.columns


STEMS: dict[str, Callable[[ImageConfig, int], nn.Module]] = {
    "linear": LinearStem,
    "convolutional": ConvolutionalStem,
    "pooled": PooledStem,
}
GRID_POSITIONS: dict[str, Callable[[ImageConfig, int], nn.Module]] = {
    "none": nn.Identity,
    "sinusoidal": SinusoidalGridPositions,
    "learned": LearnedGridPositions,
}


class PatchEmbedding(InputLayer):
    """Input layer of images: a vector for each patch, row by row, after a class token if the settings say so.

    An image comes as H rows of W pixels with C channels. Rows at its end may be padding; a patch is padding if its
    first row is. The class token is never padding.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        self.patch = config.patch
        self.stem = STEMS[config.stem](config, d_model)
        self.positions = GRID_POSITIONS[config.positions](config, d_model)
        tokens = torch.empty(int(config.class_token), d_model)  # one row or none
        # Without a token nothing is trained, as sharded training has no gradient of no size.
        self.class_token = nn.Parameter(nn.init.normal_(tokens, std=STD), requires_grad=config.class_token)

    def embed(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn images into the vectors of their patches."""
        pixels = inputs.to(self.class_token.dtype)
        return self.sequence(self.stem(pixels, padding_mask), padding_mask)

    def sequence(
        self, patches: Float[Tensor, "B R Q D"], padding_mask: Bool[Tensor, "B H"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Add positions to the vectors of patches, and put them after the class token, row by row."""
        # The first row of pixels of each row of patches decides for its Q patches: B R to B RQ.
        real = padding_mask[:, :: self.patch].repeat_interleave(patches.size(2), dim=1)
        return self.after_class_token(self.positions(patches).flatten(1, 2), real)

    def after_class_token(
        self, vectors: Float[Tensor, "B N D"], real: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Put vectors after the class token, if there is one, and their padding mask after its own."""
        first = self.class_token.expand(len(vectors), -1, -1)
        real = torch.cat([real.new_ones(first.shape[:2]), real], dim=1)
        return torch.cat([first, vectors], dim=1), real


class HidingPatchEmbedding(PatchEmbedding):
    """Input layer of images of which some patches are hidden: one trained vector takes the place of each of them.

    The pixels of hidden patches are set to 0 before the stem reads them, so that a convolutional stem, which looks
    across the borders of patches, carries nothing of them into the vectors of their neighbours.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__(config, d_model)
        self.hidden_patch = nn.Parameter(nn.init.normal_(torch.empty(d_model), std=STD))

    def embed_visible(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], hidden: Bool[Tensor, "B R Q"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn images into the vectors of their patches, of which the hidden ones are not read."""
        # B R Q patches to B H W pixels.
        covered = hidden.repeat_interleave(self.patch, 1).repeat_interleave(self.patch, 2)
        visible = inputs.to(self.class_token.dtype).masked_fill(covered[..., None], 0.0)
        # Hidden places keep their position, which is added below: the encoder knows what it is asked for.
        patches = torch.where(hidden[..., None], self.hidden_patch, self.stem(visible, padding_mask))
        return self.sequence(patches, padding_mask)


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
        return x + self.table[: x.size(1), None].to(x.dtype)


class LearnedTimes(nn.Module):
    """Learned positions in time: one trained vector for all tubelets that begin with the same frame."""

    def __init__(self, config: VideoConfig, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.normal_(torch.empty(config.frames // config.tubelet, d_model), std=STD))

    def forward(self, x: Float[Tensor, "B K P D"]) -> Float[Tensor, "B K P D"]:
        return x + self.table[: x.size(1), None]


TIMES: dict[str, Callable[[VideoConfig, int], nn.Module]] = {
    "none": nn.Identity,
    "sinusoidal": SinusoidalTimes,
    "learned": LearnedTimes,
}


class TubeletEmbedding(PatchEmbedding):
    """Input layer of videos: a vector for each tubelet, those of the first frames first, after a class token.

    A video comes as T frames of H x W pixels with C channels, a whole number of tubelets. Frames at its end may be
    padding; a tubelet is padding if its first frame is. Stem, positions of rows and columns, and class token are those
    of images: a tubelet is a patch whose channels are those of several frames.
    """

    def __init__(self, video: VideoConfig, image: ImageConfig, d_model: int) -> None:
        super().__init__(replace(image, channels=image.channels * video.tubelet), d_model)
        self.tubelet = video.tubelet
        self.times = TIMES[video.positions](video, d_model)

    def embed(
        self, inputs: Float[Tensor, "B T H W C"], padding_mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn videos into the vectors of their tubelets."""
        # Frames as more channels: a linear stem over them is a convolution in space and time.
        frames = stacked(without_padding(inputs.to(self.class_token.dtype), padding_mask), self.tubelet)
        images = frames.flatten(0, 1)  # B K H W C2 as images of a batch of B x K
        all_rows = images.new_ones(images.shape[:2], dtype=torch.bool)
        patches = self.positions(self.stem(images, all_rows)).flatten(1, 2)  # BK P D
        tubelets = self.times(patches.unflatten(0, frames.shape[:2]))  # B K P D
        real = padding_mask[:, :: self.tubelet].repeat_interleave(tubelets.size(2), dim=1)
        return self.after_class_token(tubelets.flatten(1, 2), real)
