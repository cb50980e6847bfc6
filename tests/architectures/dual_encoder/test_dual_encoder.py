"""Dual encoders: vectors of length 1 that depend on nothing else, a temperature with a limit, and CLIP's size."""

import math
from dataclasses import replace

import pytest
import torch

from heedful.architectures.dual_encoder.model import AtMost, DualEncoder
from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.architectures.input_layers import media_and_text
from heedful.architectures.parameters import count_without_building
from heedful.config.load import load_preset
from heedful.config.modalities import ImageConfig
from heedful.nn.patches import PatchEmbedding

IMAGE = ImageConfig(size=(14, 21), patch=7)
CONFIG = DualEncoderConfig(
    d_model=26, d_ff=37, heads=2, encoder_layers=2, positions="learned", max_positions=7, text_d_model=22, text_d_ff=31,
    text_heads=2, text_layers=3, text_max_positions=13, projection=17, dropout=0.3,
)  # fmt: skip
VOCABULARY = 29


def model(**changes) -> DualEncoder:
    torch.manual_seed(5)
    config = replace(CONFIG, **changes)
    return DualEncoder(config, PatchEmbedding(IMAGE, config.d_model), VOCABULARY).eval()


def texts(*lengths):
    rows = [torch.cat([torch.tensor([2]), torch.randint(4, VOCABULARY, (n - 2,)), torch.tensor([3])]) for n in lengths]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return ids, ids != 0


def pictures(count):
    return torch.randn(count, 14, 21, 3), torch.ones(count, 14, dtype=torch.bool)


@pytest.mark.parametrize(
    "changes",
    [{}, {"text_causal": False, "text_pooling": "mean"}, {"positions": "rotary", "d_k": 6, "text_d_model": 20}],
)
@torch.no_grad()
def test_a_vector_does_not_depend_on_the_others_nor_on_padding(changes):
    built = model(**changes)
    ids, mask = texts(7, 3, 11)
    together = built.texts(ids, mask)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(3))
    for row, length in enumerate((7, 3, 11)):
        alone = built.texts(ids[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(alone[0], together[row])
    ids[~mask] = 23
    torch.testing.assert_close(built.texts(ids, mask), together)
    pixels, rows = pictures(3)
    seen = built.pictures(pixels, rows)
    torch.testing.assert_close(torch.cat([built.pictures(pixels[[i]], rows[[i]]) for i in range(3)]), seen)
    torch.testing.assert_close(built.pictures(pixels[[2, 0]], rows[[2, 0]]), seen[[2, 0]])


@torch.no_grad()
def test_a_text_is_pooled_at_its_eos_and_the_order_of_words_counts():
    built = model()
    ids, mask = texts(7)
    states = built.texts.backbone(ids, mask)
    vector = built.texts.project(states[:, 6])
    torch.testing.assert_close(built.texts(ids, mask), vector / vector.norm())
    assert not torch.allclose(built.texts(ids[:, [0, 2, 1, 3, 4, 5, 6]], mask), built.texts(ids, mask))


@pytest.mark.parametrize("causal", [True, False])
@torch.no_grad()
def test_only_a_bidirectional_text_encoder_sees_later_tokens(causal):
    built = model(text_causal=causal)
    ids, mask = texts(7)
    before = built.texts.backbone(ids, mask)[:, :3]
    ids[0, 4] = 4 + (ids[0, 4] - 3) % 20
    after = built.texts.backbone(ids, mask)[:, :3]
    assert torch.equal(before, after) is causal


@torch.no_grad()
def test_logits_are_cosine_similarities_over_the_temperature():
    built = model(temperature=0.05)
    ids, mask = texts(5, 7)
    pixels, rows = pictures(3)
    a, b = built.pictures(pixels, rows).double(), built.texts(ids, mask).double()
    torch.testing.assert_close(built(pixels, rows, ids, mask).double(), 20 * a @ b.T, rtol=1e-5, atol=1e-5)


def test_the_scale_is_at_most_100_and_can_come_back():
    built = model(temperature=1e-3)
    assert built.scale.item() == pytest.approx(100)
    for sign in (1, -1):  # a loss that falls with a smaller scale, and one that falls with a larger
        built.zero_grad()
        (sign * built.scale).sum().backward()
        assert built.log_scale.grad is not None
        assert built.log_scale.grad.item() == pytest.approx(100 if sign > 0 else 0)
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: AtMost.apply(x, math.log(100)), x)


def test_clip_base_has_the_published_size_and_a_bias_of_patches():
    recipe = load_preset("clip-base")
    count = count_without_building(lambda: media_and_text(recipe, 49_408)).total
    assert count == 151_277_313 + 768


def test_the_model_answers_for_its_vocabulary_and_its_positions():
    built = model()
    assert built.embedding_of("src").weight.shape == (VOCABULARY, 22)
    assert built.token_rows() == {"texts.backbone.embedding.weight": "source"}
    assert dict(built.named_parameters()).keys() >= built.token_rows().keys()
    assert built.max_positions() == 13
    assert model(positions="none").max_positions() is None
    assert built.warm_start_names(model()) == {"": ""}
