"""Image and video input layers: square patches (Dosovitskiy et al. 2021, section 3.1), and tubelets of patches.

A tubelet is a patch over several frames (Arnab et al. 2021, section 3.2).

B batch, H height, W width, C channels, R rows and Q columns of patches, F values of a patch, P patches of a frame,
T frames, K tubelets in time, S positions of the stack, D model.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.nn.embedding import InputLayer
from heedful.nn.positions import sinusoids

STD = 0.02  # initial standard deviation of trained vectors, as in BERT


def patchify(pixels: Float[Tensor, "B H W C"], patch: int) -> Float[Tensor, "B R Q F"]:
    """Cut images into R rows and Q columns of square patches, each flattened row by row, channels last."""
    # B (R patch) (Q patch) C to B R patch Q patch C, to B R Q patch patch C, to B R Q F.
    rows, columns = pixels.size(1) // patch, pixels.size(2) // patch
    return pixels.unflatten(2, (columns, patch)).unflatten(1, (rows, patch)).transpose(2, 3).flatten(3)


def unpatchify(patches: Float[Tensor, "B R Q F"], patch: int) -> Float[Tensor, "B H W C"]:
    """Assemble images from their patches: the inverse of `patchify`."""
    # B R Q F to B R Q patch patch C, to B R patch Q patch C, to B (R patch) (Q patch) C.
    pixels = patches.unflatten(3, (patch, patch, -1)).transpose(2, 3)
    return pixels.flatten(3, 4).flatten(1, 2)


def zero_padding(inputs: Float[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N *F"]:
    """Set rows of pixels, or frames, that are padding to 0, the value with which convolutions pad borders."""
    padding = ~padding_mask.view(*padding_mask.shape, *[1] * (inputs.dim() - 2))
    return inputs.masked_fill(padding, 0.0)


class LinearStem(nn.Module):
    """Stem of the Vision Transformer: a linear map of each flattened patch, in the order of `patchify`.

    It equals a convolution whose kernel and stride are the side of a patch.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        self.patch = config.patch
        self.project = nn.Linear(config.channels * config.patch**2, d_model)

    def forward(self, pixels: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]) -> Float[Tensor, "B R Q D"]:
        return self.project(patchify(zero_padding(pixels, padding_mask), self.patch))


class ConvolutionalStem(nn.Module):
    """Stem of 3 x 3 convolutions with stride 2, each with GELU, and a linear map (Xiao et al. 2021, section 4).

    Each convolution halves height and width, and each one after the first doubles the channels. There is no batch
    norm, so that the vectors of an image do not depend on the others in its batch.
    """

    stride = 2

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        halvings = config.patch.bit_length() - 1
        # For a patch of side 2^n the widths are C, D / 2^(n - 1), ..., D / 2, D.
        widths = [config.channels, *(max(1, d_model >> (halvings - 1 - step)) for step in range(halvings))]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, 3, stride=self.stride, padding=1) for before, after in pairwise(widths)
        )
        self.project = nn.Linear(widths[-1], d_model)

    def forward(self, pixels: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]) -> Float[Tensor, "B R Q D"]:
        x = pixels
        for convolution in self.convolutions:
            # Convolutions write into the padding, which is therefore zeroed before each one. torch expects B C H W.
            x = zero_padding(x, padding_mask).permute(0, 3, 1, 2)
            x = self.halve(x, convolution).permute(0, 2, 3, 1)
            # Row r of the output is centred on row 2r of the input, and is padding if that row is.
            padding_mask = padding_mask[:, ::2]
        return self.project(x)

    def halve(self, x: Float[Tensor, "B C H W"], convolution: nn.Module) -> Float[Tensor, "B D R Q"]:
        return F.gelu(convolution(x))


class PooledStem(ConvolutionalStem):
    """Stem of 3 x 3 convolutions, each with GELU and max-pooling, and a linear map (Hassani et al. 2021).

    The convolutions have stride 1; the pooling halves height and width.
    """

    stride = 1

    def halve(self, x: Float[Tensor, "B C H W"], convolution: nn.Module) -> Float[Tensor, "B D R Q"]:
        return F.max_pool2d(super().halve(x, convolution), 3, stride=2, padding=1)


class SinusoidalGridPositions(nn.Module):
    """Sinusoidal positions in two dimensions: half of each vector encodes the row, the other half the column."""

    table: Float[Tensor, "R Q D"]

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        rows, columns = config.grid
        half = d_model // 2  # d_model is a multiple of four: sines and cosines come in pairs
        by_row = sinusoids(rows, half)[:, None].expand(-1, columns, -1)
        by_column = sinusoids(columns, half)[None].expand(rows, -1, -1)
        self.register_buffer("table", torch.cat([by_row, by_column], dim=-1), persistent=False)

    def forward(self, x: Float[Tensor, "B R Q D"]) -> Float[Tensor, "B R Q D"]:
        return x + self.table[: x.size(1)].to(x.dtype)


class LearnedGridPositions(nn.Module):
    """Learned positions in two dimensions: the sum of a trained vector for the row and one for the column."""

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        rows, columns = config.grid
        self.rows = nn.Parameter(nn.init.normal_(torch.empty(rows, d_model), std=STD))
        self.columns = nn.Parameter(nn.init.normal_(torch.empty(columns, d_model), std=STD))

    def forward(self, x: Float[Tensor, "B R Q D"]) -> Float[Tensor, "B R Q D"]:
        # (R, 1, D) + (Q, D) -> (R, Q, D); images may have fewer rows than the grid.
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
    """Image input layer: a vector for each patch, row by row, after a class token if the configuration has one.

    Rows of pixels at the end of an image may be padding. A patch is padding if its first row is; the class token never
    is.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__()
        self.patch = config.patch
        self.stem = STEMS[config.stem](config, d_model)
        self.positions = GRID_POSITIONS[config.positions](config, d_model)
        tokens = torch.empty(int(config.class_token), d_model)  # one row or none
        # An empty tensor is frozen, because sharded training cannot reduce an empty gradient.
        self.class_token = nn.Parameter(nn.init.normal_(tokens, std=STD), requires_grad=config.class_token)

    def embed(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        pixels = inputs.to(self.class_token.dtype)
        return self.sequence(self.stem(pixels, padding_mask), padding_mask)

    def sequence(
        self, patches: Float[Tensor, "B R Q D"], padding_mask: Bool[Tensor, "B H"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Add positions to the vectors of patches, and put them row by row after the class token."""
        # The first row of pixels in each row of patches decides for its Q patches: B H to B R to B RQ.
        real = padding_mask[:, :: self.patch].repeat_interleave(patches.size(2), dim=1)
        return self.after_class_token(self.positions(patches).flatten(1, 2), real)

    def after_class_token(
        self, vectors: Float[Tensor, "B N D"], real: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Prepend the class token, if there is one, to vectors and their padding mask."""
        # (1, D) -> (B, 1, D), or (0, D) -> (B, 0, D) without a class token.
        first = self.class_token.expand(vectors.size(0), -1, -1)
        real = torch.cat([real.new_ones(first.shape[:2]), real], dim=1)
        return torch.cat([first, vectors], dim=1), real


class MaskedPatchEmbedding(PatchEmbedding):
    """Image input layer with masked patches, which are all replaced with one trained vector.

    The pixels of masked patches are set to 0 before the stem, because a convolutional stem reads beyond the borders of
    a patch and would leak them into its neighbours.
    """

    def __init__(self, config: ImageConfig, d_model: int) -> None:
        super().__init__(config, d_model)
        self.hidden_patch = nn.Parameter(nn.init.normal_(torch.empty(d_model), std=STD))

    def embed_masked(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], masked: Bool[Tensor, "B R Q"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn images into the vectors of their patches, without the content of masked ones."""
        # B R Q patches to B H W pixels.
        masked_pixels = masked.repeat_interleave(self.patch, 1).repeat_interleave(self.patch, 2)
        visible = inputs.to(self.class_token.dtype).masked_fill(masked_pixels[..., None], 0.0)
        # `sequence` adds positions to masked patches too: from them the encoder knows which patch to predict.
        patches = torch.where(masked[..., None], self.hidden_patch, self.stem(visible, padding_mask))
        return self.sequence(patches, padding_mask)


def stack_frames(frames: Float[Tensor, "B T H W C"], tubelet: int) -> Float[Tensor, "B K H W C2"]:
    """Stack the channels of every `tubelet` consecutive frames, so that a patch of the result is a tubelet."""
    # B (K tubelet) H W C to B K tubelet H W C, to B K H W tubelet C, to B K H W C2.
    return frames.unflatten(1, (-1, tubelet)).permute(0, 1, 3, 4, 2, 5).flatten(4)


class SinusoidalTimes(nn.Module):
    """Sinusoidal positions in time: tubelets that begin with the same frame get the same vector."""

    table: Float[Tensor, "K D"]

    def __init__(self, config: VideoConfig, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(config.frames // config.tubelet, d_model), persistent=False)

    def forward(self, x: Float[Tensor, "B K P D"]) -> Float[Tensor, "B K P D"]:
        return x + self.table[: x.size(1), None].to(x.dtype)


class LearnedTimes(nn.Module):
    """Learned positions in time: one trained vector per step, shared by the tubelets that begin with the same frame."""

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
    """Video input layer: a vector for each tubelet, ordered by time, after a class token if the configuration has one.

    A video is a whole number of tubelets. Frames at its end may be padding; a tubelet is padding if its first frame is.
    The stem, the row and column positions and the class token work as for images, because a tubelet is treated as a
    patch with the channels of several frames.
    """

    def __init__(self, video: VideoConfig, image: ImageConfig, d_model: int) -> None:
        super().__init__(replace(image, channels=image.channels * video.tubelet), d_model)
        self.tubelet = video.tubelet
        self.times = TIMES[video.positions](video, d_model)

    def embed(
        self, inputs: Float[Tensor, "B T H W C"], padding_mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        # With frames as channels, a linear stem is a convolution in space and time.
        frames = stack_frames(zero_padding(inputs.to(self.class_token.dtype), padding_mask), self.tubelet)
        images = frames.flatten(0, 1)  # B K H W C2 to a batch of BK images
        # The padding of a video consists of whole frames: within a frame, all rows of pixels count as real.
        all_rows = images.new_ones(images.shape[:2], dtype=torch.bool)
        patches = self.positions(self.stem(images, all_rows)).flatten(1, 2)  # BK P D
        tubelets = self.times(patches.unflatten(0, frames.shape[:2]))  # B K P D
        real = padding_mask[:, :: self.tubelet].repeat_interleave(tubelets.size(2), dim=1)
        return self.after_class_token(tubelets.flatten(1, 2), real)
