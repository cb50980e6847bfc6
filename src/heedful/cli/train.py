"""`heedful train`: train a model as a recipe says, or resume an interrupted run."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a TOML file, or a folder with a config.toml.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data files that the recipe names.", show_default="the folder of the recipe"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run; if it holds an interrupted run, training resumes.",
            show_default="runs/NAME-OF-THE-RECIPE",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of the recipe, such as train.seed=2. Can be repeated."
        ),
    ] = None,
) -> None:
    """Train a model as a recipe says, or resume a run that was interrupted.

    Ctrl-C saves a checkpoint and prints the command that resumes the run. An
    interrupted run ends with exactly the same model as one without a break.
    """
    from rich.console import Console

    from heedful.config.load import load_recipe
    from heedful.tasks import find_task
    from heedful.train.loop import train as run

    settings = load_recipe(recipe, overrides or (), data)
    folder = out or Path("runs") / settings.name
    console = Console(stderr=True)
    outcome = run(settings, folder, console)
    if outcome.exit_code:
        console.print(f"stopped and saved after update {outcome.update}; the same command goes on from there:")
        console.print("  " + " ".join(["heedful", *sys.argv[1:]]), soft_wrap=True, highlight=False, markup=False)
        raise typer.Exit(outcome.exit_code)
    task = find_task(settings.task)
    advice = f"the model is in {folder / 'model'}; try: {task.usage(folder)}"
    console.print(advice, soft_wrap=True, highlight=False, markup=False)
