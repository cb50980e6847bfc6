"""Recipes, runs, models and traces of older versions are read by this one, and training goes on from them."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
import torch

import heedful
from heedful.checkpoint.safetensors_format import RENAMED, read_tensors, tensor_file
from heedful.config.load import recipe_from_dict
from heedful.inspector.capture.trace import Trace
from heedful.machine.device import processor
from heedful.training.logger import LOG, RESULT
from interrupted import train

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
TASKS = ("translation", "language_model", "masked_lm", "classification", "regression")


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def expected(old: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.chdir(old)
    return json.loads(Path(task, "expected.json").read_text())


def hash_under_old_names(path: Path) -> str:
    """SHA-256 of a file of weights as the version of the archive would have written it."""
    old = {new: name for name, new in RENAMED.items()}
    weights = {".".join(old.get(part, part) for part in name.split(".")): x for name, x in read_tensors(path).items()}
    return hashlib.sha256(b"".join(tensor_file(weights))).hexdigest()


@pytest.mark.parametrize("task", TASKS)
def test_a_run_goes_on_as_the_old_version_would_have(task: str, expected: dict) -> None:
    recipe = recipe_from_dict(json.loads(Path(task, "recipe.json").read_text()), "recipe.json")
    train(recipe, Path(task, "run"))
    log = map(json.loads, Path(task, "run", LOG).read_text().splitlines())
    assert [entry["loss"] for entry in log if "loss" in entry] == pytest.approx(expected["losses"], rel=1e-5)
    result = json.loads(Path(task, "run", RESULT).read_text())
    own = {name: result[name] for name in expected["result"]}  # newer versions report further scores
    assert own == pytest.approx(expected["result"], rel=1e-5)
    kernels = torch.__version__, torch.backends.cpu.get_cpu_capability()
    if kernels == (expected["torch"], expected["kernels"]) and "AMD" in processor(torch.device("cpu")):  # as there
        assert hash_under_old_names(Path(task, "run/model/model.safetensors")) == expected["weights"]


@pytest.mark.parametrize("task", TASKS)
def test_a_model_computes_what_an_old_trace_of_it_holds(task: str, expected: dict) -> None:
    before = Trace.load(Path(task, "trace.safetensors"))
    now = heedful.look(heedful.load(Path(task, "model")), expected["text"]).trace
    assert set(now) == set(before)
    assert all(now[name] == pytest.approx(before[name], abs=1e-5) for name in before)
