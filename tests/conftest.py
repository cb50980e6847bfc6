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
from collections.abc import Iterator
from hashlib import blake2b
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

# Before the conftest.py of a folder imports them. Rules of settings are also called with keys in place of a recipe, and
# the scores of a hypothesis may be computed when one is read, as a check does.
# Constraints check their values themselves.
check_shapes(
    [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in MODULES
        if path.is_file() and path.stem not in ("__init__", "settings", "hypothesis", "constraints")
    ]
)

settings.register_profile("heedful", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("heedful")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_all_but_samples_as_slow(items)
    if config.option.markexpr != "alone":
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("alone")])
        items[:] = [item for item in items if not item.get_closest_marker("alone")]


def mark_all_but_samples_as_slow(items: list[pytest.Item]) -> None:
    """Of a test with the mark `sampled(n)`, leave n of its parameters, and mark the others as slow.

    A hash chooses: parameters at equal distances would have one value of the inner ones of several parameters.
    """
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in variants.values():
        [count] = each[0].get_closest_marker("sampled").args
        for item in sorted(each, key=lambda item: blake2b(item.nodeid.encode()).digest())[count:]:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Let the garbage collector look through what tests make only: all else is there to the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _same_state() -> Iterator[None]:
    """Every test starts from the same random numbers and with one thread, whatever ran before it."""
    random.seed(1)
    np.random.seed(1)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(1)
        if torch.cuda.is_initialized():  # until then, torch.manual_seed takes a millisecond to note where it was called
            torch.cuda.manual_seed_all(1)
        torch.set_num_threads(1)
    yield
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # several threads, waiting for each other on cores that other tests use, take minutes
