"""Rules of dual encoders: sizes of the text encoder that fit together, and what images with texts cannot have."""

import re

import pytest

from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.config.load import load_preset, make_recipe
from heedful.config.rules import RULES
from heedful.errors import InputError

TASK = {"task": "image_text_retrieval"}
BROKEN = [
    ("task", {"task": "image_classification", "data.modality": "image"}, "leave model.architecture out"),
    ("model.text_heads", {"model.text_heads": 7}, "choose a number of heads that divides model.text_d_model"),
    ("model.text_d_model", {"model.text_d_model": 41, "model.text_heads": 1}, "is odd; make it even"),
    (
        "model.text_d_model",
        {"model.positions": "rotary", "model.text_d_model": 35, "model.text_heads": 5},
        "make model.text_d_model / model.text_heads even",
    ),
    (
        "model.text_max_positions",
        {"model.positions": "learned", "model.text_max_positions": 76},
        "or lower data.max_length",
    ),
    ("train.batch_tokens", {"train.batch_tokens": 300, "data.max_length": 301}, "raise batch_tokens"),
    ("model.segments", {"model.segments": 2}, "set model.segments = 0"),
    ("model.source_vectors", {"model.source_vectors": "a.vec"}, "leave model.source_vectors"),
    ("image.mixup", {"image.mixup": 0.2}, "set image.mixup = 0.0"),
]


def test_every_rule_is_tried():
    assert [rule.key for rule in RULES[DualEncoderConfig]] == [key for key, _, _ in BROKEN]


@pytest.mark.parametrize(("key", "changes", "message"), BROKEN)
def test_a_combination_that_cannot_work_is_refused(key, changes, message):
    values = TASK | {"model": {"architecture": "dual_encoder"}}
    with pytest.raises(InputError, match=re.escape(message)):
        make_recipe(values, changes)


def test_a_recipe_of_image_text_retrieval_has_defaults_of_its_own():
    recipe = make_recipe(TASK)
    assert recipe.model == DualEncoderConfig()
    assert (recipe.data.modality, recipe.data.max_length, recipe.train.label_smoothing) == ("image", 77, 0.0)


def test_the_small_preset_describes_both_encoders():
    assert load_preset("clip-small").model.shape() == (
        "images: 3 layers, d_model 128, d_ff 256, 4 heads of 32, pre-norm; "
        "texts: 2 layers, d_model 128, d_ff 256, 4 heads of 32; vectors of 128"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.temperature": 0.0}, "model.temperature must be more than 0"),
        ({"model.projection": 0}, "model.projection must be at least 1"),
        ({"model.family": "decoder"}, 'model.family must be "encoder"'),
        ({"model.pooler": "dense"}, 'model.pooler must be "none"'),
        ({"image.class_token": False}, 'set model.pooling = "mean"'),
    ],
)
def test_a_value_that_no_dual_encoder_has_is_refused(changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make_recipe(TASK, changes)


@pytest.mark.parametrize("causal", [True, False])
def test_the_text_encoder_has_sizes_of_its_own_and_the_rest_in_common(causal):
    config = DualEncoderConfig(
        text_d_model=35, text_heads=5, text_layers=3, text_causal=causal, d_k=7, kv_heads=2, embedding_norm=True,
        activation="quick_gelu", norm_eps=1e-3,
    )  # fmt: skip
    text = config.text()
    assert (text.d_model, text.heads, text.encoder_layers, text.decoder_layers, text.max_positions) == (35, 5, 3, 3, 77)
    assert (text.family, text.pooling) == ("decoder" if causal else "encoder", "last")
    assert (text.d_k, text.kv_heads, text.embedding_norm) == (None, None, False)
    assert (text.activation, text.norm_eps, text.norm) == ("quick_gelu", 1e-3, "pre")
