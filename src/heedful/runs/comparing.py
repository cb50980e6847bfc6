"""Comparison of two runs: the settings in which their recipes differ, and their scores side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoint.model_folder import read_description
from heedful.checkpoint.run_layout import checkpoint_folders
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.runs.listing import require_run, summary
from heedful.storage.manifest import DamagedError, read_manifest


@dataclass(frozen=True)
class Difference:
    """Setting or result that differs: its name, and its value in each of two runs; None where one has none."""

    name: str
    first: Any
    second: Any


def setting_differences(first: Path, second: Path) -> list[Difference]:
    """List the keys in which the recipes of two runs differ.

    Raises:
        InputError: a folder is not that of a run, or holds no intact recipe.
    """
    for run in (first, second):
        require_run(run)
    one, other = (dict(dotted(recipe_to_dict(recipe_of(run)))) for run in (first, second))
    return [
        Difference(key, one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def results(first: Path, second: Path) -> list[Difference]:
    """List state, update and scores of two runs, equal ones as well."""
    one, other = summary(first), summary(second)
    rows = [Difference("state", one.state, other.state), Difference("update", one.update, other.update)]
    names = dict.fromkeys([*one.scores, *other.scores])
    return rows + [Difference(name, one.scores.get(name), other.scores.get(name)) for name in names]


def recipe_of(run: Path) -> Recipe:
    """Read the recipe of a run, from its newest checkpoint that has an intact one, or from its model.

    Raises:
        InputError: the folder is not that of a run, or no recipe is intact.
    """
    require_run(run)
    saved = [*reversed(checkpoint_folders(run)), *([run / "model"] if (run / "model").exists() else [])]
    if not saved:
        raise InputError(f"{run}: has no checkpoint and no model yet; `heedful train RECIPE --out {run}` trains it on")
    for folder in saved:
        try:
            return read_description(read_manifest(folder))[0]
        except DamagedError:
            continue
    raise InputError(f"{run} holds no checkpoint with an intact recipe; `heedful runs check {run}` tells what is wrong")
