"""`heedful runs` lists, checks, compares and prunes."""

import json

import pytest
from invocation import invoke

from heedful.cli.runs import in_toml
from interrupted import train
from reversal import recipe, write_pairs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_pairs(folder, "train", 31, seed=1)
    write_pairs(folder, "valid", 5, seed=2)
    train(recipe(folder, train={"max_updates": 3, "save_every": 1, "keep_last": 5}), folder / "mine")
    return folder


def test_a_run_is_listed_as_a_row_and_as_json(runs):
    header, row = invoke("runs", "list", runs).stdout.splitlines()
    assert header.split() == ["run", "state", "update", "MB", "changed", "scores"]
    assert "finished" in row
    found = json.loads(invoke("runs", "list", runs, "--json").stdout)
    assert (found["folder"], found["update"]) == (str(runs / "mine"), 3)


def test_a_whole_run_and_its_twin_differ_in_nothing(runs):
    assert invoke("runs", "check", runs / "mine").stdout.endswith("all checksums match\n")
    assert invoke("runs", "diff", runs / "mine", runs / "mine").stdout.endswith("no setting differs\n")


def test_settings_are_written_as_in_a_recipe():
    assert list(map(in_toml, (True, "en", [1, 2], 0.5, None))) == ["true", '"en"', "[1, 2]", "0.5", "-"]


def test_nothing_is_removed_without_yes(runs):
    said = invoke("runs", "prune", runs / "mine").stdout
    assert "would remove" in said
    assert invoke("runs", "prune", runs / "mine").stdout == said
    assert "would" not in invoke("runs", "prune", runs / "mine", "--yes").stdout
    assert invoke("runs", "prune", runs / "mine").stdout.endswith("nothing to remove\n")


def test_a_damaged_run_ends_the_check_with_code_1(runs):
    (runs / "mine/model/model.safetensors").write_bytes(b"")
    found = invoke("runs", "check", runs / "mine")
    assert found.exit_code == 1
    assert "model: model.safetensors has 0 bytes instead of" in found.stdout
