"""Images as patches and videos as tubelets: their order, the convolution that they equal, what positions are for."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderOnly
from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.config.schema import ModelConfig
from heedful.nn.patches import (
    ConvolutionalStem,
    LinearStem,
    PatchEmbedding,
    PooledStem,
    SinusoidalGridPositions,
    SinusoidalTimes,
    TubeletEmbedding,
    stack_frames,
)

CONFIG = ImageConfig(size=(12, 20), patch=4)
MODEL = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=2, positions="none")
VIDEO = VideoConfig(frames=10, tubelet=2)
IMAGE = ImageConfig(size=(12, 28), patch=4)


def seen(layer: PatchEmbedding, pixels: torch.Tensor) -> torch.Tensor:
    return layer.embed(pixels, torch.ones(pixels.shape[:2], dtype=torch.bool))[0]


def without_a_patch_order(pixels: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The image with its 15 patches of 4 x 4 in another order."""
    patches = pixels.unflatten(2, (5, 4)).unflatten(1, (3, 4)).transpose(2, 3).flatten(1, 2)
    return patches[:, order].unflatten(1, (3, 5)).transpose(2, 3).flatten(3, 4).flatten(1, 2)


def test_a_picture_of_224_x_224_pixels_is_196_patches_and_a_class_token():
    layer = PatchEmbedding(ImageConfig(), 11)
    assert ImageConfig().tokens == 197
    assert seen(layer, torch.randn(1, 224, 224, 3)).shape == (1, 197, 11)
    assert seen(PatchEmbedding(ImageConfig(class_token=False), 11), torch.randn(1, 224, 224, 3)).shape == (1, 196, 11)


def test_patches_stand_row_by_row():
    layer = PatchEmbedding(replace(CONFIG, class_token=False), 7)
    pixels = torch.zeros(1, 12, 20, 3)
    pixels[0, 4:8, 12:16] = 1  # row 1, column 3 of 5 columns
    vectors = seen(layer, pixels)[0]
    lit = (vectors - vectors[0]).abs().sum(-1) > 0
    assert lit.nonzero().flatten().tolist() == [1 * 5 + 3]


def test_the_linear_stem_is_a_convolution_whose_stride_is_the_patch():
    stem, pixels, real = LinearStem(CONFIG, 7), torch.randn(3, 12, 20, 3), torch.ones(3, 12, dtype=torch.bool)
    convolution = nn.Conv2d(3, 7, kernel_size=4, stride=4)
    convolution.weight.data = stem.project.weight.data.unflatten(1, (4, 4, 3)).permute(0, 3, 1, 2)
    convolution.bias.data = stem.project.bias.data
    expected = convolution(pixels.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    torch.testing.assert_close(stem(pixels, real), expected)


@pytest.mark.parametrize("patch", [1, 2, 4])
@pytest.mark.parametrize("stem", [ConvolutionalStem, PooledStem])
def test_a_stem_of_convolutions_has_a_vector_for_each_patch(stem, patch):
    pixels, real = torch.randn(2, 12, 20, 3), torch.ones(2, 12, dtype=torch.bool)
    assert stem(replace(CONFIG, patch=patch), 13)(pixels, real).shape == (2, 12 // patch, 20 // patch, 13)


def test_the_pooled_stem_convolves_at_every_pixel_and_keeps_the_largest_around_every_other():
    stem, pixels = PooledStem(CONFIG, 14), torch.randn(3, 12, 20, 3)
    x = pixels.permute(0, 3, 1, 2)
    for (before, after), learned in zip([(3, 7), (7, 14)], stem.convolutions, strict=True):
        every_pixel = nn.Conv2d(before, after, kernel_size=3, padding=1)
        every_pixel.load_state_dict(learned.state_dict())
        x = nn.MaxPool2d(3, stride=2, padding=1)(nn.functional.gelu(every_pixel(x)))
    expected = stem.project(x.permute(0, 2, 3, 1))
    torch.testing.assert_close(stem(pixels, torch.ones(3, 12, dtype=torch.bool)), expected)


@pytest.mark.parametrize("stem", ["linear", "convolutional", "pooled"])
@torch.no_grad()
def test_rows_of_padding_change_no_patch_of_a_picture(stem):
    layer, pixels = PatchEmbedding(replace(CONFIG, stem=stem), 14), torch.randn(2, 8, 20, 3)
    padded, real = torch.cat([pixels, torch.full((2, 4, 20, 3), 5.0)], dim=1), torch.arange(12).expand(2, -1) < 8
    vectors, found = layer.embed(padded, real)
    torch.testing.assert_close(vectors[found].unflatten(0, (2, -1)), seen(layer, pixels))


def test_the_convolutional_stem_looks_over_the_upper_and_the_left_border_of_a_patch_only():
    pixels, real = torch.randn(1, 12, 20, 3, requires_grad=True), torch.ones(1, 12, dtype=torch.bool)
    ConvolutionalStem(CONFIG, 13)(pixels, real)[0, 1, 2].sum().backward()
    assert pixels.grad is not None
    rows, columns = pixels.grad[0].abs().sum(-1).nonzero().unbind(1)
    assert (rows.min(), rows.max()) == (1 * 4 - 3, 1 * 4 + 3)
    assert (columns.min(), columns.max()) == (2 * 4 - 3, 2 * 4 + 3)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@torch.no_grad()
def test_shuffled_patches_change_nothing_without_positions_and_everything_with_them(positions):
    order, pixels = torch.randperm(15), torch.randn(1, 12, 20, 3)
    shuffled = without_a_patch_order(pixels, order)
    mask = torch.ones(1, 12, dtype=torch.bool)
    for kind, same in (("none", True), (positions, False)):
        encoder = EncoderOnly(MODEL, PatchEmbedding(replace(CONFIG, positions=kind), 16)).eval()
        if kind == "learned":
            nn.init.normal_(encoder.embedding.positions.rows)
            nn.init.normal_(encoder.embedding.positions.columns)
        before, after = encoder(pixels, mask), encoder(shuffled, mask)
        assert torch.allclose(before[:, 0], after[:, 0], atol=1e-5) == same  # the class token
        assert torch.allclose(before[:, 1:][:, order], after[:, 1:], atol=1e-5) == same


def test_sinusoidal_positions_tell_every_place_from_every_other():
    table = SinusoidalGridPositions(CONFIG, 16).table.flatten(0, 1)
    distances = torch.cdist(table, table) + torch.eye(15)
    assert distances.min() > 0.1


def layer(d_model: int = 11, video: VideoConfig = VIDEO, **image: Any) -> TubeletEmbedding:
    return TubeletEmbedding(video, replace(IMAGE, **image), d_model)


def test_32_frames_of_224_x_224_pixels_are_3136_tubelets_of_2_x_16_x_16_and_a_class_token():
    video = VideoConfig(frames=32)
    assert video.tokens(32, ImageConfig()) == 16 * 14 * 14 + 1
    found = seen(TubeletEmbedding(video, ImageConfig(), 3), torch.randn(1, 32, 224, 224, 3))
    assert found.shape == (1, 3137, 3)


def test_tubelets_stand_frame_by_frame_and_row_by_row():
    frames = torch.zeros(1, 10, 12, 28, 3)
    frames[0, 7, 4:8, 12:16] = 1  # the second frame of the fourth tubelet in time; row 1, column 3 of 7 columns
    vectors = seen(layer(class_token=False), frames)[0]
    lit = (vectors - vectors[0]).abs().sum(-1) > 0
    assert lit.nonzero().flatten().tolist() == [3 * 3 * 7 + 1 * 7 + 3]


@pytest.mark.parametrize("tubelet", [1, 2, 5])
def test_the_linear_stem_is_a_convolution_in_three_dimensions_whose_kernel_and_stride_are_the_tubelet(tubelet):
    embedding = layer(video=replace(VIDEO, tubelet=tubelet), class_token=False)
    frames = torch.randn(3, 10, 12, 28, 3)
    convolution = nn.Conv3d(3, 11, kernel_size=(tubelet, 4, 4), stride=(tubelet, 4, 4))
    weight = embedding.get_parameter("stem.project.weight").data.unflatten(1, (4, 4, tubelet, 3))
    convolution.weight.data = weight.permute(0, 4, 3, 1, 2)
    convolution.bias.data = embedding.get_parameter("stem.project.bias").data
    expected = convolution(frames.permute(0, 4, 1, 2, 3)).flatten(2).transpose(1, 2)
    torch.testing.assert_close(seen(embedding, frames), expected)


@pytest.mark.parametrize("stem", ["linear", "convolutional"])
@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
def test_a_video_of_one_frame_that_is_its_tubelet_is_a_picture(stem, positions):
    image, video = replace(IMAGE, stem=stem, positions=positions), VideoConfig(frames=1, tubelet=1)
    embedding, picture = TubeletEmbedding(video, image, 12), PatchEmbedding(image, 12)
    picture.load_state_dict(embedding.state_dict())
    pixels = torch.randn(2, 12, 28, 3)
    torch.testing.assert_close(seen(embedding, pixels[:, None]), seen(picture, pixels))
    assert video.tokens(1, image) == image.tokens


def test_a_tubelet_of_several_frames_has_the_channels_of_all_of_them():
    frames = torch.randn(2, 10, 3, 7, 5)
    found = stack_frames(frames, 5)
    assert found.shape == (2, 2, 3, 7, 25)
    assert torch.equal(found[1, 1, 2, 6], frames[1, 5:, 2, 6].flatten())


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_shuffled_frames_change_nothing_without_positions_in_time_and_everything_with_them(positions):
    order, frames = torch.tensor([3, 0, 4, 1, 2]), torch.randn(1, 5, 12, 28, 3)
    mask = torch.ones(1, 5, dtype=torch.bool)
    for kind, same in (("none", True), (positions, False)):
        video = VideoConfig(frames=5, tubelet=1, positions=kind)
        encoder = EncoderOnly(MODEL, layer(16, video, positions="sinusoidal")).eval()
        if kind == "learned":
            nn.init.normal_(encoder.embedding.times.table)
        before, after = encoder(frames, mask), encoder(frames[:, order], mask)
        assert torch.allclose(before[:, 0], after[:, 0], atol=1e-5) == same  # the class token
        first, second = (states[:, 1:].unflatten(1, (5, 21)) for states in (before, after))
        assert torch.allclose(first[:, order], second, atol=1e-5) == same


@torch.no_grad()
def test_places_in_a_frame_matter_without_positions_in_time_too():
    frames = torch.randn(1, 4, 12, 28, 3)
    encoder = EncoderOnly(MODEL, layer(16, replace(VIDEO, frames=4), positions="sinusoidal")).eval()
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert not torch.allclose(encoder(frames, mask)[:, 0], encoder(frames.flip(3), mask)[:, 0], atol=1e-3)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_in_time_and_space_tell_every_tubelet_from_every_other(positions):
    embedding = layer(16, replace(VIDEO, positions=positions), positions=positions, class_token=False)
    if positions == "learned":
        for table in (embedding.times.table, embedding.positions.rows, embedding.positions.columns):
            nn.init.normal_(table)
    vectors = seen(embedding, torch.zeros(1, 10, 12, 28, 3))[0]
    distances = torch.cdist(vectors, vectors) + torch.eye(len(vectors))
    assert len(vectors) == 5 * 3 * 7
    assert distances.min() > 0.1


def test_each_time_has_one_sinusoidal_vector():
    times = SinusoidalTimes(VIDEO, 14)
    assert times.table.shape == (5, 14)
    found = times(torch.zeros(2, 3, 7, 14))
    assert torch.equal(found, times.table[:3, None].expand(2, -1, 7, -1))


def test_of_a_video_the_frames_that_are_padding_make_tubelets_that_are_padding():
    real = torch.arange(10) < torch.tensor([[10], [6], [2]])
    vectors, mask = layer().embed(
        torch.full((3, 10, 12, 28, 3), torch.nan).masked_fill(real[..., None, None, None], 1), real
    )
    assert mask.sum(1).tolist() == [1 + 5 * 21, 1 + 3 * 21, 1 + 21]
    assert vectors.isfinite().all()
