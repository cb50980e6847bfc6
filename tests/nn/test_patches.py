"""Pictures as patches: their number and order, the convolution that they equal, and what positions are for."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderOnly
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig
from heedful.nn.patches import ConvolutionalStem, LinearStem, PatchEmbedding, PooledStem, SinusoidalGridPositions

CONFIG = ImageConfig(size=(12, 20), patch=4)
MODEL = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=2, positions="none")


def seen(layer: PatchEmbedding, pixels: torch.Tensor) -> torch.Tensor:
    return layer.embed(pixels, torch.ones(pixels.shape[:2], dtype=torch.bool))[0]


def without_a_patch_order(pixels: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The picture with its 15 patches of 4 x 4 in another order."""
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
