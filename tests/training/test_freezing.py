"""Frozen weights: they stay what they were to the bit, and everything else is trained."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy_step import learner

from every_architecture import ENCODERS
from heedful.architectures import EncoderDecoder, TextClassifier, load_weights, weights
from heedful.checkpoint import load_model
from heedful.config.schema import Recipe, TrainConfig
from heedful.errors import InputError
from heedful.training.preflight import preflight
from heedful.training.warm_start import freeze
from interrupted import train
from reversal import recipe

SHAPE = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 11, "decoder_layers": 1, "tie": "none"}


def frozen(*beginnings: str, **shape: object) -> set[str]:
    """The names of the weights that are frozen in a model of 11 encoder layers."""
    settings = recipe(Path(), model=SHAPE | shape, train={"freeze": list(beginnings)})
    model = EncoderDecoder(settings.model, 17, 19)
    freeze(model, settings)
    return {name for name, value in model.named_parameters() if not value.requires_grad}


def test_nothing_is_frozen_by_itself():
    assert frozen() == set()


def test_a_name_stands_for_a_part_of_the_model_and_not_for_others_that_begin_alike():
    assert {name.split(".")[2] for name in frozen("encoder.blocks.1")} == {"1"}  # and not 10
    assert {name.split(".")[0] for name in frozen("encoder", "source_embedding")} == {"encoder", "source_embedding"}
    assert frozen("output.weight") == {"output.weight"}


def test_a_matrix_with_several_names_is_frozen_by_each_of_them():
    assert "source_embedding.weight" in frozen("output", tie="all")


def test_a_part_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r'no weight name begins with "encoder\.blocks\.11"; .* encoder\.blocks, '):
        frozen("encoder.blocks.11")


def test_something_is_left_to_train():
    with pytest.raises(InputError, match=r"train\.freeze leaves nothing to train"):
        frozen("source_embedding", "target_embedding", "encoder", "decoder", "output")


@pytest.mark.parametrize("name", ENCODERS)
def test_what_is_frozen_whole_computes_in_training_what_it_computes_in_use(name):
    shape = replace(ENCODERS[name], dropout=0.5)
    shape = replace(shape, attention_dropout=0.5) if hasattr(shape, "attention_dropout") else shape
    model = TextClassifier(shape, 17, 2)
    trained = [weight for weight, _ in model.named_parameters() if not weight.startswith("backbone")]
    freeze(model, Recipe(model=shape, train=TrainConfig(freeze=("backbone",))))
    ids = torch.randint(4, 17, (3, 7))
    used, frozen = (model.train(mode).backbone(ids, ids > 5, torch.zeros_like(ids)) for mode in (False, True))
    assert torch.equal(used, frozen)
    assert [weight for weight, value in model.named_parameters() if value.requires_grad] == trained


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_trains_all_but_what_is_frozen(precision, text, tmp_path):
    tie = {"tie": "none"}
    train(recipe(text, model=tie, train={"max_updates": 3, "save_every": 3}), tmp_path / "start")
    keys = {"precision": precision, "start": str(tmp_path / "start"), "freeze": ["encoder", "source_embedding"]}
    train(preflight(recipe(text, model=tie, train=keys)), tmp_path / "run")
    before, after = (weights(load_model(tmp_path / name).model) for name in ("start", "run"))
    same = {name.split(".")[0] for name in after if torch.equal(before[name], after[name])}
    assert same == {"encoder", "source_embedding"}
    changed = {name.split(".")[0] for name in after if not torch.equal(before[name], after[name])}
    assert changed == {"decoder", "target_embedding", "output"}


def test_a_run_that_goes_on_computes_with_the_frozen_weights_of_its_checkpoint():
    step = learner("bfloat16", frozen=("encoder",))
    load_weights(step.model, {name: torch.randn_like(value) for name, value in weights(step.model).items()})
    step.precision.refresh()
    for name, value in weights(step.precision.replica).items():
        assert torch.equal(value, step.model.get_parameter(name).bfloat16())


def test_a_wrong_name_is_found_before_anything_is_made(text, tmp_path):
    train(recipe(text, train={"max_updates": 3, "save_every": 3}), tmp_path / "start")
    with pytest.raises(InputError, match=r'begins with "backbone"'):
        preflight(recipe(text, train={"start": str(tmp_path / "start"), "freeze": ["backbone"]}))
