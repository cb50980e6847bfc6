"""One small model with its tokenizers, and a run that saved some steps of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import toy_checkpoints

from heedful.checkpoint import Checkpoint
from heedful.config.schema import Recipe
from heedful.text.tokenizer_pair import TokenizerPair


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    return toy_checkpoints.RECIPE


@pytest.fixture(scope="session")
def tokenizers() -> TokenizerPair:
    return toy_checkpoints.tokenizers()


@pytest.fixture(scope="session")
def checkpoint_of() -> Callable[[int], Checkpoint]:
    """The checkpoint of a step; its values depend on the step alone."""
    return toy_checkpoints.checkpoint_of


@pytest.fixture
def run(first_run: Path, tmp_path: Path) -> Path:
    """A copy of `first_run` to play with."""
    return shutil.copytree(first_run, tmp_path / "run")


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with steps 2, 3 and 5, of which 2 is the best: one more save deletes 3."""
    folder = tmp_path_factory.mktemp("first") / "run"
    toy_checkpoints.save_run(folder)
    return folder
