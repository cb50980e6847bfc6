"""The part of `heedful evaluate` that scores a model by its own task, or compares two models for it."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.comparison import comparison_lines
from heedful.cli.tables import columns_of
from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.checkpoint import LoadedModel
    from heedful.config.schema import DataConfig, Recipe

FEW = 100  # examples, below which a bootstrap tells little


def test_set(
    recipe: "Recipe",
    source: Path | None,
    references: list[Path] | None,
    folder: Path | None,
    fields: dict[str, str | None],
) -> "DataConfig":
    """The data of a recipe with the test set that is asked for.

    Args:
        recipe: The recipe.
        source: A file with the test set; None: that of the recipe.
        references: The other file of a test set in two files.
        folder: Where relative paths of the recipe start; None: where they did in training.
        fields: The columns of a test set in a table, by the keys of a recipe; of None, those of the recipe's own data.

    Raises:
        InputError: there is none, or it cannot be found.
    """
    data = recipe.data
    named = {field: name for field, name in fields.items() if name is not None}
    if named and (source is None or references):
        raise InputError("--source-field and the like name columns of a table; give it, and it alone, as --source FILE")
    if source is None:
        if references:
            raise InputError("--reference is the second of two files of a test set; give the first as --source FILE")
        if data.test is None:
            raise InputError("the model's recipe names no data.test; give a test set as --source FILE")
        return located(recipe, folder)
    if folder or len(references or ()) > 1:
        raise InputError("--source names a test set of its own: leave --data out, and give one --reference at most")
    target = str(references[0].absolute()) if references else None
    test = replace(columns_of(recipe), source=str(source.absolute()), target=target, part=(0.0, 1.0), **named)
    return replace(data, test=test)


def located(recipe: "Recipe", folder: Path | None) -> "DataConfig":
    """The data of a recipe; relative paths start at `folder`, or where they did in training.

    Raises:
        InputError: that folder is not here.
    """
    if folder is None and not Path(recipe.data.root).is_dir():
        raise InputError(f"the recipe's data were in {recipe.data.root}, which is not here: give --data FOLDER")
    return replace(recipe.data, root=str(folder or recipe.data.root))


def task_scores(model: str, data: "DataConfig", device: str, beam: int | None) -> tuple[dict[str, Any], list[str]]:
    """The scores of a model's own task on the test set: as JSON values, and as lines.

    Raises:
        InputError: there is no such model or device, the test set cannot be used, or nothing is searched for.
    """
    loaded = load(model, device, beam)
    with show_progress(f"evaluating {model}") as progress:
        scores = loaded.test(data, tell_once(), progress)
    return {"system": model, "task": loaded.recipe.task, "scores": scores}, score_lines(scores)


def task_comparison(
    model: str, baseline: str, task: str, data: "DataConfig", device: str, beam: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Two models for a task, compared on the test set example by example: as JSON values, and as lines.

    Raises:
        InputError: as `task_scores`; or the scores of the task do not follow from examples.
    """
    from heedful.evaluate.resampling import compare_outcomes
    from heedful.tasks import find_task

    tell = tell_once()
    outcomes = []
    for name in (baseline, model):
        loaded = load(name, device, beam)
        own = replace(loaded.recipe.data, root=data.root, test=data.test)
        with show_progress(f"evaluating {name}") as progress:
            outcomes.append(loaded.outcomes(own, tell, progress))
    theirs, ours = outcomes
    if ours.count != theirs.count:
        raise InputError(
            f"{model} tells {ours.count:,} examples of the test set apart, and {baseline} {theirs.count:,}; they read "
            "it too differently to be compared example by example"
        )
    if ours.count < FEW:
        tell(f"heedful: {ours.count} examples are few: whether a difference on them is chance cannot be told reliably")
    with show_progress("comparing by paired bootstrap"):
        comparisons = compare_outcomes(theirs, ours)
    if left := [name for name in find_task(task).scores if name not in ours.scores]:
        tell(f"heedful: scores of a test set as a whole, such as {left[-1]}, are not compared")
    facts = {"system": model, "task": task, "examples": ours.count, "baseline": baseline}
    return (
        {**facts, "comparisons": [asdict(found) for found in comparisons]},
        comparison_lines(baseline, model, comparisons, digits=4),
    )


def check_alike(model: str, recipe: "Recipe", baseline: str, other: "Recipe") -> None:
    """Refuse two models that were not trained for the same.

    Raises:
        InputError: they are of different tasks, or tell different classes.
    """
    if recipe.task != other.task:
        raise InputError(
            f'{baseline} is a model for the task "{other.task}", and {model} for the task "{recipe.task}"; compare two '
            "of one task"
        )
    if recipe.data.labels != other.data.labels:
        raise InputError(
            f"{baseline} tells {', '.join(other.data.labels)}, and {model} {', '.join(recipe.data.labels)}; compare "
            "two models whose data.labels are the same"
        )


def load(model: str, device: str, beam: int | None) -> "LoadedModel":
    """Load a model; `beam` is the beam size of its search, if it is not to be that of its recipe.

    Raises:
        InputError: there is no such model or device, or it searches for nothing.
    """
    from heedful.checkpoint import load_model
    from heedful.config.families import FAMILIES
    from heedful.machine import choose_device, prepare_process

    prepare_process()
    loaded = load_model(model, str(choose_device(device)))
    if beam is None:
        return loaded
    if not FAMILIES[loaded.recipe.model.family].pairs:
        raise InputError(f"--beam is the beam size of a search, and {model} searches for nothing; leave it out")
    return replace(loaded, recipe=replace(loaded.recipe, decode=replace(loaded.recipe.decode, beam=beam)))


def tell_once() -> Callable[[str], None]:
    """A function that says sentences on standard error, each once: of a test set two models may say the same."""
    said: set[str] = set()

    def tell(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            typer.echo(sentence, err=True)

    return tell


def score_lines(scores: dict[str, float]) -> list[str]:
    """One line a score."""
    width = max(map(len, scores))
    return [f"{name:{width}}  {value:9.4f}" for name, value in scores.items()]
