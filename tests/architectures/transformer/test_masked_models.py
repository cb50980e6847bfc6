"""The model of masked patches: what it sees of an image, and what it is to predict."""

import pytest
import torch

from heedful.architectures import MaskedPatchModel, SequenceClassifier
from heedful.architectures.transformer.masked_models import denormalise_patches, normalise_patches
from heedful.architectures.transformer.model import EncoderOnly
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig
from heedful.nn.patches import MaskedPatchEmbedding, PatchEmbedding, patchify, unpatchify

IMAGE = ImageConfig(size=(12, 20), patch=4)  # 3 x 5 patches
MODEL = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=2, positions="learned")
REAL = torch.ones(2, 12, dtype=torch.bool)


def picture_and_hidden() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 12, 20, 3), torch.rand(2, 3, 5) < 0.5


def configured(stem: str) -> ImageConfig:
    return ImageConfig(size=(12, 20), patch=4, stem=stem)


def with_other_hidden_pixels(pixels: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    covered = hidden.repeat_interleave(4, 1).repeat_interleave(4, 2)[..., None]
    return torch.where(covered, 9 * torch.randn_like(pixels), pixels)


@pytest.mark.parametrize("stem", ["linear", "convolutional", "pooled"])
@torch.no_grad()
def test_nothing_that_is_predicted_depends_on_hidden_pixels(stem):
    model = MaskedPatchModel(MODEL, configured(stem)).eval()
    pixels, hidden = picture_and_hidden()
    changed = with_other_hidden_pixels(pixels, hidden)
    assert not torch.equal(pixels, changed)
    assert torch.equal(model(pixels, REAL, hidden), model(changed, REAL, hidden))


@torch.no_grad()
def test_the_convolutional_stem_would_carry_hidden_pixels_to_their_neighbours():
    """The test before this one could not fail without a stem that looks across borders."""
    layer = PatchEmbedding(configured("convolutional"), 16)
    pixels, _ = picture_and_hidden()
    hidden = torch.zeros(2, 3, 5, dtype=torch.bool)
    hidden[:, 1, 2] = True
    before, after = (layer.stem(x, REAL) for x in (pixels, with_other_hidden_pixels(pixels, hidden)))
    changed = (before != after).any(-1)
    assert changed.sum() > hidden.sum()


@torch.no_grad()
def test_without_hidden_patches_the_input_layer_is_that_of_a_classifier():
    layer = MaskedPatchEmbedding(configured("convolutional"), 16)
    plain = PatchEmbedding(configured("convolutional"), 16)
    plain.load_state_dict({name: value for name, value in layer.state_dict().items() if name != "hidden_patch"})
    pixels, hidden = picture_and_hidden()
    found, real = layer.embed_masked(pixels, REAL, torch.zeros_like(hidden))
    expected, expected_real = plain.embed(pixels, REAL)
    assert torch.equal(found, expected)
    assert torch.equal(real, expected_real)
    assert torch.equal(layer.embed(pixels, REAL)[0], expected)


@torch.no_grad()
def test_hidden_patches_have_one_vector_before_their_positions():
    layer = MaskedPatchEmbedding(IMAGE, 16)
    pixels, hidden = picture_and_hidden()
    vectors = layer.embed_masked(pixels, REAL, hidden)[0][:, 1:].unflatten(1, (3, 5))
    assert torch.equal(vectors[hidden], layer.hidden_patch.expand(int(hidden.sum()), -1))


@pytest.mark.parametrize("class_token", [True, False])
@torch.no_grad()
def test_shuffled_patches_are_predicted_in_their_new_places_without_positions_and_not_with_them(class_token):
    pixels, hidden = picture_and_hidden()
    order = torch.randperm(15)

    def shuffled(patches: torch.Tensor) -> torch.Tensor:
        return patches.flatten(1, 2)[:, order].unflatten(1, (3, 5))

    for positions, same in (("none", True), ("learned", False)):
        image = ImageConfig(size=(12, 20), patch=4, class_token=class_token)
        config = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=2, positions=positions)
        model = MaskedPatchModel(config, image).eval()
        before = model(pixels, REAL, hidden)
        after = model(unpatchify(shuffled(patchify(pixels, 4)), 4), REAL, shuffled(hidden))
        assert torch.allclose(shuffled(before), after, atol=1e-5) == same


def test_cut_patches_join_to_the_picture():
    pixels, _ = picture_and_hidden()
    assert patchify(pixels, 4).shape == (2, 3, 5, 48)
    assert torch.equal(unpatchify(patchify(pixels, 4), 4), pixels)


def test_each_patch_of_the_target_has_mean_0_and_variance_1_and_can_be_restored():
    pixels, _ = picture_and_hidden()
    pixels[0, :4, :4] = 0.7  # of a single colour
    target = normalise_patches(pixels, 4)
    torch.testing.assert_close(target.mean(-1), torch.zeros(2, 3, 5), atol=1e-5, rtol=0)
    variance = target.var(-1, correction=0)
    assert variance[0, 0, 0] < 1e-6
    torch.testing.assert_close(variance.flatten()[1:], torch.ones(29), atol=1e-4, rtol=0)
    torch.testing.assert_close(unpatchify(denormalise_patches(target, pixels, 4), 4), pixels, atol=1e-5, rtol=0)


def test_a_classifier_takes_input_layer_and_backbone_by_their_names():
    start = MaskedPatchModel(MODEL, IMAGE)
    classifier = SequenceClassifier(MODEL, EncoderOnly(MODEL, PatchEmbedding(IMAGE, 16)), 3)
    assert classifier.warm_start_names(start)["backbone."] == "backbone."
    theirs = {name for name, _ in start.backbone.named_parameters()}
    assert theirs - {name for name, _ in classifier.backbone.named_parameters()} == {"embedding.hidden_patch"}
