"""An architecture of a user's own has the properties of those that come with heedful; that of a how-to page is one."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import heedful
from heedful.checkpoint import load_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.models import EncoderDecoder, weights
from heedful.models.architectures import ARCHITECTURES, model_class
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.train import loop
from heedful.train.warm_start import copy_start_weights
from interrupted import stop_after, train
from reversal import SETTINGS, fingerprint, write_pairs
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
    assert {model_class(ModelConfig(family=family)) for family in ARCHITECTURES["transformer"]} > {EncoderDecoder}


def test_a_class_of_ones_own_is_built_by_its_name():
    assert model_class(SHAPE) is gated.GatedRecurrent


def test_another_family_than_that_of_the_class_is_refused():
    with pytest.raises(InputError, match=r'is of family "encoder_decoder", not "decoder"; leave model\.family out'):
        model_class(replace(SHAPE, family="decoder"))


def test_an_architecture_answers_nothing_unless_it_has_an_answer(model):
    assert (model.side, model.line, model.named_stacks(), model.max_positions()) == (None, "tgt", [], None)
    assert (model.token_rows(), model.head_transform()) == ({}, None)
    assert model.warm_start_names(model) == {"": ""}
    assert model.warm_start_names(EncoderDecoder(ModelConfig(d_model=14, heads=2), 29, 31)) == {}


@torch.no_grad()
def test_padding_changes_no_hidden_state(model):
    lengths = [7, 3, 1, 5]
    rows = [torch.randint(4, 29, (length,)) for length in lengths]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(padded.size(1)) < torch.tensor(lengths)[:, None]
    together = model.hidden(padded, mask, padded, mask)
    for row, states, length in zip(rows, together, lengths, strict=True):
        whole = torch.ones(1, length, dtype=torch.bool)
        torch.testing.assert_close(states[:length], model.hidden(row[None], whole, row[None], whole)[0])


@torch.no_grad()
def test_a_token_at_a_time_gives_the_logits_of_all_at_once(model):
    source, target = torch.randint(4, 29, (3, 7)), torch.randint(4, 31, (3, 5))
    masks = [torch.ones_like(ids, dtype=torch.bool) for ids in (source, target)]
    state = model.start(source, masks[0])
    steps = torch.stack([state.step(column) for column in target.unbind(1)], dim=1)
    torch.testing.assert_close(steps, model(source, masks[0], target, masks[1]))


def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(text, tmp_path, monkeypatch):
    assert train(recipe(text), tmp_path / "whole") == loop.Outcome(19, 0)
    with monkeypatch.context() as patch:
        stop_after(8, patch)
        assert train(recipe(text), tmp_path / "parts") == loop.Outcome(8, 143)
    assert train(recipe(text), tmp_path / "parts") == loop.Outcome(19, 0)
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def test_a_trained_model_is_searched_alike_in_any_batch_and_looked_into(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    translator = heedful.load(tmp_path / "run")
    lines = (text / "valid.src").read_text().splitlines()
    for beam in (1, 3):
        together = translator.translate(lines, beam=beam)
        assert [translator.translate(line, beam=beam) for line in lines] == together
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
