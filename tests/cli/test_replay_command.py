"""`heedful replay` prints a table for each batch and for the gradients, and a conclusion."""

import json

import pytest
from invocation import invoke

from heedful.errors import InputError
from interrupted import train
from reversal import recipe, write_pairs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    settings = {"max_updates": 13, "validate_every": 100, "log_every": 1, "accumulate": 2}
    train(recipe(folder, train=settings), folder / "run")
    return folder / "run"


def test_tables_and_a_conclusion_are_printed(run):
    *lines, norm, conclusion = invoke("replay", run, 7).stdout.splitlines()
    assert norm.startswith("update 7: gradient norm before clipping: ")
    assert norm.endswith(", bit for bit as in the log")
    assert conclusion == "all tensors are finite"
    assert [line.split(",")[0] for line in lines if line.startswith("batch")] == ["batch 0", "batch 1"]
    assert all("(sum over the batch)" in line for line in lines if line.startswith("batch"))
    assert sum(line.startswith("enc.0.ffn.h ") for line in lines) == 2
    assert sum(line.startswith("encoder.blocks.0.feed_forward.up.weight ") for line in lines) == 1


def test_json_has_all_digits(run):
    found = json.loads(invoke("replay", run, 7, "--json").stdout)
    assert found["norm"] == found["logged_norm"]
    assert found["batches"][1]["tensors"][0]["not_finite"] == 0


def test_an_update_that_was_never_computed_is_an_error(run):
    with pytest.raises(InputError, match="update 999 is too late: the newest checkpoint is from update 13"):
        invoke("replay", run, 999)
    with pytest.raises(InputError, match=r"choose an update up to 13$"):  # its recipe ends the run there
        invoke("replay", run, 14)
