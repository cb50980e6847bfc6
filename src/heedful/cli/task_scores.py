"""`heedful evaluate` for tasks other than translation: score a model, or compare two models of one task."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.compare import comparison_lines
from heedful.cli.files import ScoredFiles
from heedful.cli.output import check_output, warn_of_missing_glyphs
from heedful.cli.tables import columns_of
from heedful.cli.translate import changed
from heedful.errors import InputError, RunError
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.checkpoint import LoadedModel
    from heedful.config.schema import DataConfig, Recipe
    from heedful.evaluate.class_report import ClassReport


def test_set(
    recipe: "Recipe",
    source: Path | None,
    references: list[Path] | None,
    folder: Path | None,
    fields: dict[str, str | None],
) -> "DataConfig":
    """Return the data settings of a recipe with the test set that the options of `heedful evaluate` name.

    Args:
        recipe: The recipe.
        source: A file with the test set; None: the recipe's test set.
        references: The second file of a test set in two files.
        folder: The folder that relative paths of the recipe start from; None: as in training.
        fields: The columns of a test set in a table, by the keys of a recipe; None: as the recipe's own data has them.

    Raises:
        InputError: there is no test set, or the options do not fit together, or the data are not here.
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
    """Return the data settings of a recipe, with relative paths that start at `folder` or, if None, as in training.

    Raises:
        InputError: the folder of the data in training is not here.
    """
    if folder is None and not Path(recipe.data.root).is_dir():
        raise InputError(f"the recipe's data were in {recipe.data.root}, which is not here: give --data FOLDER")
    return replace(recipe.data, root=str(folder or recipe.data.root))


def task_scores(
    model: str, data: "DataConfig", device: str, search: dict[str, int], files: ScoredFiles, plot: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Score a model on a test set with the metrics of its task: as JSON values, and as lines.

    Args:
        model: The model.
        data: The test set.
        device: The device to compute on.
        search: Settings of the search that replace those of the recipe.
        files: How files are read; it has those that cannot be read then, which are left out.
        plot: The picture of the confusion matrix to write; None: there is none.

    Raises:
        InputError: there is no such model or device, the test set cannot be used, `search` is for a model without a
            search, or `plot` for one whose outputs are not classes.
    """
    from heedful.tasks.task import Evaluation, Results
    from heedful.training.logger import strict

    draw = drawing_of(plot, data) if plot else None
    loaded = files.options.applied(model, load(model, device, search))
    if draw and not loaded.recipe.data.labels:
        raise InputError(f"--plot draws what is confused with what, and {model} does not predict classes; leave it out")
    tell = tell_once()
    with show_progress(f"evaluating {model}") as progress, files.testing(loaded, data, tell) as task:
        run = Evaluation(progress=progress, warn=tell, is_test=True)
        results = task.evaluate(loaded.model, run) or Results({})
    scores, classes = results.scores, results.outcomes.classes if results.outcomes else None
    facts = {"system": model, "task": loaded.recipe.task, "scores": {name: strict(x) for name, x in scores.items()}}
    lines = score_lines(scores)
    if classes is None:
        return facts, lines
    tell_classes(classes, tell, model)
    if draw:
        draw(classes, model)
    return facts | classes.to_dict(), [*lines, "", *classes.lines()]


def tell_classes(classes: "ClassReport", tell: Callable[[str], None], model: str) -> None:
    """Name classes of which the test set has no example, and warn of a model that predicts one class only."""
    from heedful.evaluate.class_report import absence, sameness

    for sentence in (absence(classes.absent, "the test set"), sameness(classes, model, "the test set")):
        if sentence:
            tell(f"heedful: {sentence}")


def drawing_of(plot: Path, data: "DataConfig") -> "Callable[[ClassReport, str], None]":
    """Return a function that draws the confusion matrix of a model, given its report and its name, to a file.

    Raises:
        InputError: matplotlib is missing, or no picture can be written there.
    """
    from heedful.data.preparation.prepared_data import files_of
    from heedful.storage.written_files import note_written

    try:
        from heedful.inspector.plots import FORMATS, draw_confusion
    except ModuleNotFoundError as error:
        raise InputError(f'drawing needs {error.name}: pip install "heedful[plot]"') from error
    if plot.suffix not in FORMATS:
        raise InputError(f"--plot {plot}: a picture's name ends in {' or '.join(FORMATS)}")
    check_output(plot, *(files_of(data.test, data) if data.test else ()), option="--plot")

    def draw(classes: "ClassReport", model: str) -> None:
        try:
            missing = draw_confusion(classes, f"model {model}", plot)
            note_written(plot)
        except OSError as error:
            raise RunError(f"cannot write {plot}: {error.strerror or error}") from error
        typer.echo(f"{plot}: confusion matrix", err=True)
        warn_of_missing_glyphs("Classes", missing)

    return draw


def task_comparison(
    models: tuple[str, str], data: "DataConfig", device: str, search: dict[str, int], files: ScoredFiles
) -> tuple[dict[str, Any], list[str]]:
    """Compare two models of a task on a test set, example by example: as JSON values, and as lines of a table.

    Args:
        models: the model, and the baseline.
        data: the test set, and how it is read.
        device: the device to compute on.
        search: settings of the search that replace those of the recipes.
        files: how files are read; it has those that cannot be read then, which are left out.

    Raises:
        InputError: a model, the device or the test set cannot be used, `search` is for a model without a search, or
            the scores of the task do not follow from examples.
    """
    from heedful.evaluate.significance import FEW, Outcomes, compare_outcomes, few_examples
    from heedful.tasks.task import Evaluation

    tell = tell_once()
    model, baseline = models
    outcomes: list[Outcomes] = []
    names: Iterable[str] = ()
    task = ""
    for name in (baseline, model):
        loaded = files.options.applied(name, load(name, device, search))
        task = loaded.recipe.task
        own = replace(loaded.recipe.data, root=data.root, test=data.test)
        with show_progress(f"evaluating {name}") as progress, files.testing(loaded, own, tell) as tested:
            results = tested.evaluate(loaded.model, Evaluation(progress=progress, warn=tell, is_test=True))
        if results is None or results.outcomes is None:
            raise InputError(
                f'two models for the task "{task}" cannot be compared by resampling, as its scores '
                f"({', '.join(results.scores if results else ())}) are not made of single examples, or are no numbers; "
                "evaluate each model by itself"
            )
        outcomes.append(results.outcomes)
        names = results.scores
    theirs, ours = outcomes
    for name, each in zip((baseline, model), outcomes, strict=True):
        if each.classes:
            tell_classes(each.classes, tell, name)
    if ours.count != theirs.count:
        raise InputError(
            f"{model} tells {ours.count:,} examples of the test set apart, and {baseline} {theirs.count:,}; they read "
            "it too differently to be compared example by example"
        )
    if ours.count < FEW:
        tell(f"heedful: {few_examples(ours.count)}")
    with show_progress("comparing by paired bootstrap"):
        comparisons = compare_outcomes(theirs, ours)
    if left := [name for name in names if name not in ours.scores]:
        tell(f"heedful: scores of a test set as a whole, such as {left[-1]}, are not compared")
    facts = {"system": model, "task": task, "examples": ours.count, "baseline": baseline}
    if ours.classes:
        facts["classes_without_examples"] = ours.classes.absent
    return (
        {**facts, "comparisons": [asdict(found) for found in comparisons]},
        comparison_lines(baseline, model, comparisons, digits=4),
    )


def check_alike(model: str, recipe: "Recipe", baseline: str, other: "Recipe") -> None:
    """Refuse to compare two models of different tasks, or with different classes.

    Raises:
        InputError: the models are of different tasks, or tell different classes apart.
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


def load(model: str, device: str, search: dict[str, int]) -> "LoadedModel":
    """Load a model to evaluate with some keys of [decode], such as the beam size, other than its recipe says.

    Raises:
        InputError: there is no such model or device, or `search` is for a model without a search.
    """
    from heedful.checkpoint import load_model
    from heedful.config.families import FAMILIES
    from heedful.machine import prepare_process

    prepare_process()
    loaded = load_model(model, device)
    if not search:
        return loaded
    if not FAMILIES[loaded.recipe.model.family].pairs:
        option = "--beam is the beam size" if "beam" in search else "--max-extra is the length limit"
        raise InputError(f"{option} of a search, and {model} searches for nothing; leave it out")
    return replace(loaded, recipe=changed(loaded, "decode", search))


def tell_once() -> Callable[[str], None]:
    """Make a function that prints sentences on standard error, each only once, as two models may report the same."""
    said: set[str] = set()

    def tell(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            typer.echo(sentence, err=True)

    return tell


def score_lines(scores: dict[str, float]) -> list[str]:
    """Format scores as lines: name and value."""
    width = max(map(len, scores))
    return [f"{name:{width}}  {value:9.4f}" for name, value in scores.items()]
