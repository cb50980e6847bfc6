"""The table of architectures, and an architecture of a user's own, that of a how-to page.

`test_every_architecture.py` holds the properties of all of them.
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import heedful
from heedful.architectures import EncoderDecoder, weights
from heedful.architectures.backbone import families_of, model_class
from heedful.checkpoint import load_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.training.warm_start import copy_start_weights
from interrupted import train
from reversal import SETTINGS, write_pairs
from shown_modules import GATED, gated

SHAPE = gated.GatedConfig(architecture=GATED, d_model=14, layers=2, dropout=0.1)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder


@pytest.fixture
def model() -> torch.nn.Module:
    return model_class(SHAPE)(SHAPE, 29, 31).eval()


def recipe(text: Path, **changes: int | str) -> Recipe:
    values = deepcopy(SETTINGS)
    values["data"]["root"] = str(text)
    values["model"] = {"architecture": GATED, "d_model": 14, "layers": 2}
    values["train"] |= {"accumulate": 2, **changes}
    return recipe_from_dict(values, "test")


def test_every_family_of_a_transformer_has_a_class():
    assert {model_class(ModelConfig(family=family)) for family in families_of("transformer")} > {EncoderDecoder}


def test_a_class_of_ones_own_is_built_by_its_name():
    assert model_class(SHAPE) is gated.GatedRecurrent


def test_another_family_than_that_of_the_class_is_refused():
    with pytest.raises(
        InputError, match=r'is of family "encoder_decoder", not "decoder"; set model\.family = "encoder_decoder"'
    ):
        model_class(replace(SHAPE, family="decoder"))


def test_an_architecture_answers_nothing_unless_it_has_an_answer(model):
    assert (model.side, model.line, model.named_stacks(), model.max_positions()) == (None, "tgt", [], None)
    assert (model.token_rows(), model.head_transform()) == ({}, None)
    assert model.warm_start_names(model) == {"": ""}
    assert model.warm_start_names(EncoderDecoder(ModelConfig(d_model=14, heads=2), 29, 31)) == {}


def test_a_trained_model_is_looked_into(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    translator = heedful.load(tmp_path / "run")
    lines = (text / "valid.src").read_text().splitlines()
    seen = heedful.trace(translator, lines[0])
    assert set(seen.checks) == {"fused", "steps"}
    assert max(seen.checks.values()) < 1e-5
    heedful.look(translator, lines[0]).save(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_warm_start_takes_the_weights_of_the_same_architecture(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    started = recipe(text, start=str(tmp_path / "run"), max_updates=1)
    network = find_task("translation").build(started, TokenizerPair.load(tmp_path / "run/model/tokenizer"))
    assert copy_start_weights(started, network, TokenizerPair.load(tmp_path / "run/model/tokenizer")) == []
    assert all(
        torch.equal(value, network.state_dict()[name])
        for name, value in weights(load_model(tmp_path / "run").model).items()
    )


def test_the_shape_is_told_in_words():
    assert "d_model 14, freeze_vectors False, layers 2, dropout 0.1" in SHAPE.shape()
