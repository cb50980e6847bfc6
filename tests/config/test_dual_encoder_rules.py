"""Rules of dual encoders: sizes of the text encoder that fit together, and what pictures with texts cannot have."""

import re

import pytest

from heedful.config.dual_encoder import DualEncoderConfig
from heedful.config.load import load_preset, make_recipe
from heedful.config.rules import RULES_OF
from heedful.errors import InputError

TASK = {"task": "image_text_retrieval"}
BROKEN = [
    ("task", {"task": "image_classification", "data.modality": "image"}, "leave model.architecture out"),
    ("model.text_heads", {"model.text_heads": 7}, "choose a number of heads that divides it"),
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
    assert [rule.key for rule in RULES_OF[DualEncoderConfig]] == [key for key, _, _ in BROKEN]


@pytest.mark.parametrize(("key", "changes", "message"), BROKEN)
def test_a_combination_that_cannot_work_is_refused(key, changes, message):
    values = TASK | {"model": {"architecture": "dual_encoder"}}
    with pytest.raises(InputError, match=re.escape(message)):
        make_recipe(values, changes)


def test_a_recipe_of_image_text_retrieval_has_defaults_of_its_own():
    recipe = make_recipe(TASK)
    assert recipe.model == DualEncoderConfig()
    assert (recipe.data.modality, recipe.data.max_length) == ("image", 77)


def test_the_small_preset_describes_both_encoders():
    assert load_preset("clip-small").model.shape() == (
        "pictures: 3 layers, d_model 128, d_ff 256, 4 heads of 32, pre-norm; "
        "texts: 2 layers, d_model 128, d_ff 256, 4 heads of 32; vectors of 128"
    )
