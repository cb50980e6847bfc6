"""Training from a Python program or a notebook, without the command line: `heedful.train`."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from heedful.checkpoint import claim, load_model
from heedful.config.load import Overrides, load_recipe, make_recipe
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.parallel import all_processes, is_first_process
from heedful.predict import AnyPredictor
from heedful.train import loop
from heedful.train.callbacks import CallbackError, Callbacks
from heedful.train.in_memory import with_data
from heedful.train.log_file import LOG, final_scores, records
from heedful.train.resume import Resumption


@dataclass(frozen=True)
class TrainingResult:
    """Result of a finished training run: its folder, its number of updates and the scores of the final model.

    Attributes:
        folder: the folder of the run; the model is in `folder / "model"`, and `heedful.load(folder)` opens it.
        update: the number of updates of the run.
        scores: the scores of the final model on the validation set; empty without one.
    """

    folder: Path
    update: int
    scores: dict[str, float]

    @cached_property
    def predictor(self) -> AnyPredictor:
        """The final model as a predictor (a translator, a generator ...), on the device that `heedful.load` chooses."""
        return load_model(self.folder, "auto").use()

    @property
    def log(self) -> list[dict[str, Any]]:
        """Records of the training log, in order: an "update" and its measurements, such as "loss" or "valid_bleu"."""
        return records(self.folder / LOG)


def train(
    recipe: str | Path | Recipe | Mapping[str, Any],
    out: str | Path | None = None,
    data: object = None,
    overrides: Overrides = (),
    console: Console | None = None,
    callbacks: Iterable[object] = (),
    allow_change: Iterable[str] = (),
) -> TrainingResult:
    """Train a model in this process from a recipe; see `heedful.train`."""
    called = Callbacks(callbacks)
    resumption = Resumption(allowed=(allow_change,) if isinstance(allow_change, str) else tuple(allow_change))
    root = data if data is None or isinstance(data, str | PathLike) else None
    settings = as_recipe(recipe, overrides, root if root is None else Path(root))
    folder = Path("runs") / settings.name if out is None else Path(out)
    if root is None and data is not None:
        settings = given_data(settings, data, folder)
    console = console or Console(stderr=True)
    threads = torch.get_num_threads()
    try:
        outcome = loop.train(settings, folder, console, resumption=resumption, callbacks=called)
    except CallbackError as failed:
        raise failed.error from failed.error.__cause__
    finally:
        torch.set_num_threads(threads)
    if outcome.exit_code:
        if is_first_process():
            console.print(f"stopped and saved after update {outcome.update}; the same call goes on from there")
        signal.raise_signal(outcome.exit_code - 128)
    return TrainingResult(folder, outcome.update, final_scores(folder))


def given_data(recipe: Recipe, data: object, folder: Path) -> Recipe:
    """Write the data of this program into the folder of the run, and return the recipe that reads it.

    Raises:
        InputError: the data cannot be used, another process writes to the folder, or the run has several processes.
    """
    if all_processes() > 1:
        raise InputError("data of a program is for runs of one process; save it to files, and name them in the recipe")
    with claim(folder):
        return with_data(recipe, data, folder)


def as_recipe(
    recipe: str | Path | Recipe | Mapping[str, Any], overrides: Overrides = (), data: str | Path | None = None
) -> Recipe:
    """Load the recipe of a run from a file, or make it from Python values.

    Raises:
        InputError: there is no such file, or the recipe is not valid.
    """
    root = None if data is None else Path(data)
    if isinstance(recipe, str | Path):
        return load_recipe(recipe, overrides, root)
    return make_recipe(recipe, overrides, root)
