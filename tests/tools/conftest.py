import shutil
from pathlib import Path

import pytest

from interrupted import train
from reversal import recipe, write_pairs


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of 5 updates, saved after each, and one of 3 with another learning rate."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text").mkdir()
    write_pairs(folder / "text", "train", 31, seed=1)
    write_pairs(folder / "text", "valid", 5, seed=2)
    often = {"save_every": 1, "validate_every": 2, "keep_last": 7}
    train(recipe(folder / "text", train={"max_updates": 5, **often}), folder / "group/first")
    changed = recipe(folder / "text", train={"max_updates": 3, **often}, optimizer={"lr": 0.02})
    train(changed, folder / "group/second")
    return folder / "group"


@pytest.fixture
def runs(finished_runs: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished_runs, tmp_path / "group")


@pytest.fixture
def interrupted(runs: Path) -> Path:
    """The first run without its end."""
    shutil.rmtree(runs / "first/model")
    (runs / "first/result.json").unlink()
    return runs / "first"
