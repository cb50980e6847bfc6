"""A replayed update is that of the run to the last bit, and names the tensor at which a run goes wrong."""

import json
import math
import shutil
from copy import deepcopy

import pytest
import torch
from rich.console import Console

import toy_tasks
from heedful.architectures.transformer.layers import FeedForward
from heedful.checkpoint import Checkpoints
from heedful.cli.checks import replay_lines
from heedful.config.load import recipe_from_dict
from heedful.errors import DivergedError, InputError
from heedful.random_numbers import seed_of
from heedful.tools.replay import measure, replay
from heedful.training.logger import LOG
from interrupted import stop_after, train, train_aloud
from reversal import SETTINGS, recipe, write_pairs
from toy_vectors import toy_recipe

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder


def norms(folder):
    records = map(json.loads, (folder / LOG).read_text().splitlines())
    return {record["update"]: record["norm"] for record in records if "norm" in record}


def rates(folder):
    records = map(json.loads, (folder / LOG).read_text().splitlines())
    return {record["update"]: record["lr"] for record in records if "lr" in record}


LOGGED = {"log_every": 1, "save_every": 5, "keep_last": 2, "accumulate": 2}


@pytest.mark.parametrize("task", toy_tasks.TASKS)
def test_an_update_of_every_task_comes_out_as_the_run_had_it(task, tmp_path):
    settings = toy_tasks.recipe(task, toy_tasks.write_text(tmp_path / "text"), train=LOGGED)
    train(settings, tmp_path / "run")
    for update in (2, 9):  # before the first checkpoint that is left, and behind it
        found = replay(tmp_path / "run", update, QUIET)
        assert found.norm == found.logged_norm == norms(tmp_path / "run")[update]
        assert found.first_not_finite() is None
        assert all(batch.tensors and batch.examples for batch in found.batches)


@pytest.mark.parametrize(
    "model",
    [
        {"dropout": 0.1},
        {"architecture": "recurrent", "cell": "gru", "attention": "additive", "layers": 2, "dropout": 0.1},
        {"architecture": "recurrent", "cell": "lstm", "layers": 1},
        {"architecture": "convolutional", "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1},
        {"architecture": "bytenet", "encoder_layers": 3, "decoder_layers": 3, "max_dilation": 2, "dropout": 0.1},
    ],
    ids=lambda model: model.get("cell", model.get("architecture", "transformer")),
)
def test_an_update_of_every_architecture_comes_out_as_the_run_had_it(model, pairs, tmp_path):
    values = deepcopy(SETTINGS) | {"model": {"d_model": 16, **model}}
    values["data"]["root"] = str(pairs)
    values["train"] |= LOGGED | {"max_updates": 13, "validate_every": 100}
    settings = recipe_from_dict(values, "test")
    train(settings, tmp_path / "run")
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    found = replay(tmp_path / "run", 12, QUIET)
    assert found.norm == found.logged_norm
    assert len(found.batches) == 2
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == before


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_an_update_whose_rate_depends_on_the_minutes_comes_out_as_the_run_had_it(schedule, pairs, tmp_path):
    values = deepcopy(SETTINGS)
    values["data"]["root"] = str(pairs)
    values["optimizer"] |= {"schedule": schedule, "warmup": 0}
    values["train"] |= LOGGED | {"max_updates": 23, "validate_every": 100, "max_minutes": 1.0}
    train(recipe_from_dict(values, "test"), tmp_path / "run")
    for update in (3, 12, 23):
        found = replay(tmp_path / "run", update, QUIET)
        assert found.norm == found.logged_norm


@pytest.mark.parametrize("stop", [4, 11])
def test_a_run_that_minutes_end_resumes_with_the_times_of_its_updates(stop, pairs, tmp_path, monkeypatch):
    values = deepcopy(SETTINGS)
    values["data"]["root"] = str(pairs)
    values["optimizer"] |= {"schedule": "linear", "warmup": 0}
    values["train"] |= LOGGED | {"max_updates": 23, "validate_every": 100, "max_minutes": 1.0}
    settings = recipe_from_dict(values, "test")
    with monkeypatch.context() as patch:
        stop_after(stop, patch)
        train(settings, tmp_path / "run")
    begun = rates(tmp_path / "run")
    train(settings, tmp_path / "run")
    resumed = rates(tmp_path / "run")
    assert len(begun) == stop
    assert len(resumed) == 23
    assert {update: resumed[update] for update in begun} == begun
    assert [resumed[update] for update in sorted(resumed)] == sorted(resumed.values(), reverse=True)
    assert replay(tmp_path / "run", stop + 1, QUIET).norm == norms(tmp_path / "run")[stop + 1]


def test_an_update_of_word_vectors_comes_out_as_the_run_had_it(tmp_path):
    train(toy_recipe(tmp_path, train={"accumulate": 2}), tmp_path / "run")
    assert replay(tmp_path / "run", 13, QUIET).norm == norms(tmp_path / "run")[13]


def poison(monkeypatch, updates, batch):
    """Let the feed-forward networks give NaN in one of the batches of some updates."""
    honest, bad = FeedForward.forward, {seed_of(1, update, batch) for update in updates}

    def forward(self, x):
        return honest(self, x) * (math.nan if self.training and torch.initial_seed() in bad else 1.0)

    monkeypatch.setattr(FeedForward, "forward", forward)


def test_an_update_that_is_left_out_is_told_and_its_replay_names_the_tensor(pairs, tmp_path, monkeypatch):
    poison(monkeypatch, [7], batch=1)
    _, said = train_aloud(recipe(pairs, train=LOGGED | {"max_updates": 11}), tmp_path / "run")
    remark = f"update 7 has no finite gradient, and leaves the weights unchanged; `heedful replay {tmp_path / 'run'} 7`"
    assert remark in said
    found = replay(tmp_path / "run", 7, QUIET)
    place, tensor = found.first_not_finite() or ("", None)
    assert (place, tensor and tensor.name) == ("batch 1", "enc.0.ffn.out")
    assert math.isnan(found.norm)
    assert any(
        line.startswith("the first tensor that is not finite: enc.0.ffn.out in batch 1") for line in replay_lines(found)
    )
    assert replay(tmp_path / "run", 9, QUIET).norm == norms(tmp_path / "run")[9]


def test_a_replay_leaves_the_run_as_it_is(pairs, tmp_path):
    data = shutil.copytree(pairs, tmp_path / "data")
    train(recipe(data, train=LOGGED | {"max_updates": 17, "keep_last": 9}), tmp_path / "run")
    Checkpoints(tmp_path / "run", 9).mark_best(15, "loss", 0.3)
    before = contents(tmp_path / "run")
    replay(tmp_path / "run", 12, QUIET)
    assert contents(tmp_path / "run") == before
    with (data / "train.src").open("a") as source, (data / "train.tgt").open("a") as target:
        source.write("w1\n")
        target.write("w1\n")
    with pytest.raises(InputError, match="data has changed"):
        replay(tmp_path / "run", 12, QUIET)
    assert contents(tmp_path / "run") == before


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_diverges_ends_with_an_exit_code_of_its_own(pairs, tmp_path, monkeypatch):
    poison(monkeypatch, range(3, 31), batch=0)
    with pytest.raises(
        DivergedError, match=r"no finite gradient in the last 10 updates, up to 12: .*`heedful replay"
    ) as told:
        train(recipe(pairs, train=LOGGED | {"max_updates": 31, "save_every": 2}), tmp_path / "run")
    assert told.value.exit_code == 3
    assert "enc.0.ffn.out in batch 0" in replay_lines(replay(tmp_path / "run", 12, QUIET))[-1]


def test_sizes_are_those_of_the_finite_numbers():
    found = measure("x", torch.tensor([[3.0, -4.0], [math.nan, math.inf]]))
    assert (found.shape, found.rms, found.largest, found.not_finite) == ((2, 2), math.sqrt(12.5), 4.0, 2)
    assert measure("x", torch.full((3,), math.nan)).rms == 0
    rows = torch.sparse_coo_tensor([[1, 1]], [[2.0], [3.0]], (7, 1), check_invariants=True)
    assert measure("x", rows).largest == 5


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no checkpoints"):
        replay(tmp_path, 3, QUIET)
