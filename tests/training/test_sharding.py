"""Training with sharded weights computes what training with whole weights does."""

import json
import sys
from pathlib import Path

import pytest
import torch
from toy_step import learner

from heedful.checkpoint import Checkpoints
from heedful.checkpoint.model_folder import read_weights
from heedful.distributed.launch import launch
from heedful.errors import InputError
from heedful.storage.complete_folder import verify_folder
from heedful.training.sharding import Root, shard

SCRIPT = Path(__file__).with_name("sharded_updates.py")


def found_by(processes: int, folder: Path) -> dict:
    assert launch([sys.executable, str(SCRIPT), str(folder)], processes) == 0
    return json.loads((folder / "found.json").read_text())


def test_a_weight_without_rows_is_named_before_anything_is_shared():
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.tensor(7.0))
    model.project = torch.nn.Linear(3, 5)
    with pytest.raises(InputError, match=r'weights scale are single numbers.*parallel\.shard = "none"'):
        shard(Root(model), None, None)


@pytest.mark.slow
def test_two_processes_share_the_weights_and_get_what_one_gets_to_the_last_bit(tmp_path):
    found = found_by(2, tmp_path)
    saving, refused = found.pop("saving"), found.pop("refused")
    assert found.pop("lora") < 1e-6
    assert found == dict.fromkeys(found, 0.0)
    assert len(found) == 8
    assert "2 processes cannot be divided into groups of 3" in refused
    assert "process 1 cannot write" in saving["said"]
    assert saving["left"] == ["step-00000001"]
    assert saving["steps"] == [1, 2]
    assert saving["best"]
    assert saving["state"] == {"a": 0.1}
    assert saving["goes on"]


@pytest.mark.slow
def test_two_copies_of_the_weights_are_each_held_by_two_processes(tmp_path):
    found = found_by(4, tmp_path)
    assert found["hybrid"] < 1e-5
    assert found["muon"] < 1e-4
    assert found["held"] == [[19, 24], [19], [12, 37], [12]]
    folder = Checkpoints(tmp_path / "run", 1).path(1)
    manifest = verify_folder(folder)
    assert sorted(name for name in manifest.files if name.startswith("model-")) == [
        f"model-0000{rank}-of-00004.safetensors" for rank in (1, 2, 3, 4)
    ]
    expected = {name: value.shape for name, value in learner().model.named_parameters()}
    assert {name: value.shape for name, value in read_weights(manifest).items()} == expected
    sizes = [manifest.files[f"model-0000{rank}-of-00004.safetensors"].bytes for rank in (1, 2, 3, 4)]
    assert max(sizes[2:]) < 200  # the second copy is not written
    assert all(bool(torch.isfinite(value).all()) for value in read_weights(manifest).values())
