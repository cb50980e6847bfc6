"""What holds for every test: one thread, a fixed seed, and shapes that are checked at run time.

jaxtyping's import hook turns each annotation such as Float[Tensor, "B T D"] into a check. Tests marked `alone`, which
take times, are left out unless they are asked for by `pytest -m alone`. torch itself is left for the tests that need
it to import.
"""

import gc
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for the commands that tests start
os.environ["XDG_STATE_HOME"] = os.path.join(tempfile.gettempdir(), "heedful-tests")  # not in the developer's home

import numpy as np
import pytest
from hypothesis import settings

from shape_checks import check_shapes

gc.disable()  # until all is imported and collected, which is there to the end

SOURCE = Path(__file__).parent.parent / "src"
SHAPED = ("nn", "architectures", "losses", "optim", "tasks", "search", "inspector", "convert")
ANSWERS = ("captioner", "filler", "generator", "outputs", "speech", "transcriber", "translator")  # with tensors inside
MODULES = [SOURCE / f"heedful/{part}.py" for part in (*SHAPED, *(f"predictors/{part}" for part in ANSWERS))]
MODULES += [path for part in SHAPED for path in (SOURCE / f"heedful/{part}").rglob("*.py")]

# Before the conftest.py of a folder imports them. Rules of settings are also called with keys in place of a recipe.
check_shapes(
    [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in MODULES
        if path.is_file() and path.stem not in ("__init__", "settings")
    ]
)

settings.register_profile("heedful", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("heedful")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr != "alone":
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("alone")])
        items[:] = [item for item in items if not item.get_closest_marker("alone")]


def pytest_collection_finish() -> None:
    """Let the garbage collector look through what tests make only: all else is there to the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random numbers, whatever ran before it."""
    random.seed(1)
    np.random.seed(1)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(1)
