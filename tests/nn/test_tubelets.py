"""Videos as tubelets: their number and order, the convolution that they equal, and what positions in time are for."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderOnly
from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.config.schema import ModelConfig
from heedful.nn.patches import PatchEmbedding, SinusoidalTimes, TubeletEmbedding, stacked

VIDEO = VideoConfig(frames=10, tubelet=2)
IMAGE = ImageConfig(size=(12, 28), patch=4)
MODEL = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=2, positions="none")


def layer(d_model: int = 11, video: VideoConfig = VIDEO, **image: Any) -> TubeletEmbedding:
    return TubeletEmbedding(video, replace(IMAGE, **image), d_model)


def seen(embedding: PatchEmbedding, frames: torch.Tensor) -> torch.Tensor:
    return embedding.embed(frames, torch.ones(frames.shape[:2], dtype=torch.bool))[0]


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
    found = stacked(frames, 5)
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
