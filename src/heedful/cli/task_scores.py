"""The part of `heedful evaluate` that scores a model by its own task."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.config.schema import DataConfig, Recipe


def test_set(recipe: "Recipe", source: Path | None, references: list[Path] | None, folder: Path | None) -> "DataConfig":
    """The data of a recipe with the test set that is asked for: files, whose fields are those of the recipe's own ones.

    Raises:
        InputError: there is none, or it cannot be found.
    """
    data = recipe.data
    if source is None:
        if references or data.test is None:
            raise InputError("the model's recipe names no data.test, or there is --reference: give --source FILE")
        return located(recipe, folder)
    if folder or len(references or ()) > 1:
        raise InputError("--source names a test set of its own: leave --data out, and give one --reference at most")
    target = str(references[0].absolute()) if references else None
    like = data.test or data.valid or data.train[0]
    return replace(data, test=replace(like, source=str(source.absolute()), target=target, part=(0.0, 1.0)))


def located(recipe: "Recipe", folder: Path | None) -> "DataConfig":
    """The data of a recipe; relative paths start at `folder`, or where they did in training.

    Raises:
        InputError: that folder is not here.
    """
    if folder is None and not Path(recipe.data.root).is_dir():
        raise InputError(f"the recipe's data were in {recipe.data.root}, which is not here: give --data FOLDER")
    return replace(recipe.data, root=str(folder or recipe.data.root))


def task_scores(model: str, data: "DataConfig", device: str, beam: int | None) -> dict[str, Any]:
    """The scores of a model's own task on the test set, as JSON values.

    Raises:
        InputError: there is no such model or device, the test set cannot be used, or nothing is searched for.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import choose_device, prepare_process

    prepare_process()
    loaded = load_model(model, str(choose_device(device)))
    if beam is not None:
        if loaded.recipe.model.family != "encoder_decoder":
            raise InputError(f"--beam is the beam size of a search, and {model} searches for nothing; leave it out")
        loaded = replace(loaded, recipe=replace(loaded.recipe, decode=replace(loaded.recipe.decode, beam=beam)))
    with show_progress(f"evaluating {model}") as progress:
        scores = loaded.test(data, lambda message: typer.echo(message, err=True), progress)
    return {"system": model, "task": loaded.recipe.task, "scores": scores}


def score_lines(scores: dict[str, float]) -> list[str]:
    """One line a score."""
    width = max(map(len, scores))
    return [f"{name:{width}}  {value:9.4f}" for name, value in scores.items()]
