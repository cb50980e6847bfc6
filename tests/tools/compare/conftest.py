"""A comparison of two tiny systems that reverse words, made once, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from heedful.config.load import recipe_to_dict, to_toml
from heedful.config.schema import Recipe
from heedful.errors import RunError
from heedful.tools.compare import comparison, measure
from heedful.tools.compare.job import Job
from heedful.tools.compare.measure import work
from heedful.tools.compare.setup import Budget, parse_systems
from heedful.training import loop
from reversal import recipe, write_pairs

Compare = Callable[..., comparison.Outcome]
TRAIN = loop.train


def in_this_process(path: Path) -> tuple[int, int | None]:
    """Do the job of a file without another process."""
    return work(Job.from_json(json.loads(path.read_text())), Console(quiet=True)), None


def make_quick(patch: pytest.MonkeyPatch) -> None:
    """Let comparisons work in this process, and count the FLOPs of few sentences, which takes most of their time."""
    patch.setattr(comparison, "run_process", in_this_process)
    patch.setattr(measure, "SENTENCES", 2)


def diverging(recipe: Recipe, folder: Path, *others: Any) -> loop.Outcome:
    """Train a system, unless it is named "gone"."""
    if folder.name == "gone":
        raise RunError("the run has diverged")
    return TRAIN(recipe, folder, *others)


def lay_out(folder: Path) -> Path:
    """Write training, validation and test text, and the recipe toy.toml for them."""
    for seed, (name, count) in enumerate({"train": 101, "valid": 11, "test": 61}.items(), start=1):
        write_pairs(folder, name, count, seed)
    values = recipe_to_dict(recipe(folder, data={"test": {"source": "test.src", "target": "test.tgt"}}))
    values |= {"name": "toy", "decode": {"beam": 2, "max_extra": 2}}
    (folder / "toy.toml").write_text(to_toml(values), encoding="utf-8")
    return folder


def compare_in(folder: Path, *arguments: str, settings: tuple[str, ...] = (), **budget: float) -> comparison.Outcome:
    """Compare systems in a folder, in this process; the report is in folder/out."""
    said: list[str] = []
    systems = parse_systems([word.replace("HERE", str(folder)) for word in arguments], settings)
    made = comparison.ComparisonRun(systems, Budget(**budget), folder / "out", None, said.append)  # type: ignore
    return made.run()


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compare systems in a folder with the text and the recipe of the toy task."""
    make_quick(monkeypatch)
    lay_out(tmp_path)
    return lambda *arguments, **options: compare_in(tmp_path, *arguments, **options)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, comparison.Outcome]:
    """A finished comparison of a narrow and a wide system, and of one that diverges."""
    folder = lay_out(tmp_path_factory.mktemp("compared"))
    systems = ("narrow=HERE/toy.toml", "wide=HERE/toy.toml", "gone=HERE/toy.toml")
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        patch.setattr(loop, "train", diverging)
        return folder, compare_in(folder, *systems, settings=("wide:model.d_model=32",), updates=17)
