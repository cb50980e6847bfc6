"""What holds for every test: one thread, a fixed seed, and shapes that are checked at run time.

jaxtyping's import hook turns each annotation such as Float[Tensor, "B T D"] into a check. torch.compile cannot trace
those checks, so tests marked `compile` are left out unless they are asked for by `pytest -m compile`, and so are those
marked `alone`, which take times. torch itself is left for the tests that need it to import.
"""

import os
import random
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for the commands that tests start

import numpy as np
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

SHAPED = ("nn", "models", "losses", "optim", "tasks", "decode", "inspector", "convert")
WITH_SHAPES = [f"heedful.{part}" for part in SHAPED]

settings.register_profile("heedful", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("heedful")


ASKED_FOR = ("compile", "alone")


def only_compile(config: pytest.Config) -> bool:
    """Whether this run was started as `pytest -m compile`."""
    return config.option.markexpr == "compile"


def pytest_configure(config: pytest.Config) -> None:
    if not only_compile(config):
        install_import_hook(WITH_SHAPES, "beartype.beartype")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker in ASKED_FOR:
        marked = [item for item in items if item.get_closest_marker(marker)]
        if config.option.markexpr != marker:
            items[:] = [item for item in items if item not in marked]
            config.hook.pytest_deselected(items=marked)
    for item in items:
        if item.get_closest_marker("compile"):
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # while torch compiles, it warns of its own code


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random numbers, whatever ran before it."""
    random.seed(1)
    np.random.seed(1)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(1)
