"""Recipes of dual encoders: their defaults, and what cannot work."""

import re

import pytest

from heedful.config.dual_encoder import DualEncoderConfig
from heedful.config.dual_encoder_rules import RULES
from heedful.config.load import make_recipe
from heedful.errors import InputError

BROKEN = [
    ({"task": "image_classification", "model.architecture": "dual_encoder"}, 'set task = "image_text_retrieval"'),
    ({"model.text_heads": 7}, "model.text_d_model = 512 cannot be divided by model.text_heads = 7"),
    (
        {"model.positions": "sinusoidal", "model.text_d_model": 35, "model.text_heads": 5},
        "model.text_d_model = 35 is odd",
    ),
    ({"model.positions": "rotary", "model.text_d_model": 35, "model.text_heads": 5}, "make model.text_d_model / "),
    (
        {"model.positions": "learned", "data.max_length": 79},
        "data.max_length = 79 tokens, more than the model.text_max_positions = 77",
    ),
    ({"data.max_length": 5000}, "train.batch_tokens = 4096 does not hold a text of data.max_length = 5000"),
    ({"model.segments": 2}, "set model.segments = 0"),
    ({"model.source_vectors": "glove.txt"}, "leave model.source_vectors"),
    ({"image.mixup": 0.2}, "set image.mixup = 0.0"),
]
WRONG = [
    ({"model.temperature": 0.0}, "model.temperature must be more than 0"),
    ({"model.projection": 0}, "model.projection must be at least 1"),
    ({"model.family": "decoder"}, 'model.family must be "encoder"'),
    ({"model.pooler": "dense"}, 'model.pooler must be "none"'),
    ({"image.class_token": False}, 'set model.pooling = "mean"'),
    ({"data.modality": "text"}, 'data.modality = "text"'),
]


def test_a_recipe_of_image_text_retrieval_has_defaults_of_its_own():
    recipe = make_recipe({"task": "image_text_retrieval"})
    assert recipe.model == DualEncoderConfig()
    assert (recipe.data.modality, recipe.data.max_length, recipe.train.label_smoothing) == ("image", 77, 0.0)
    assert recipe.model.shape() == (
        "pictures: 6 layers, d_model 512, d_ff 2048, 8 heads of 64, pre-norm; "
        "texts: 6 layers, d_model 512, d_ff 2048, 8 heads of 64; vectors of 512"
    )


@pytest.mark.parametrize(("changes", "message"), BROKEN + WRONG[:-1])
def test_what_a_dual_encoder_cannot_have_is_refused_with_the_remedy(changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make_recipe({"task": "image_text_retrieval"}, changes)


def test_every_rule_is_tried_above():
    assert len(BROKEN) == len(RULES)


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
