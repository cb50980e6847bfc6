"""`heedful train`: from a recipe to a model."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe: a TOML file, or a folder with a config.toml.")],
    data: Annotated[Path | None, typer.Option(help="Where the recipe's relative data paths start.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; a run there goes on. [runs/NAME]")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: train.seed=2. Repeatable.")
    ] = None,
) -> None:
    """Train a model, or go on with an interrupted run.

    Ctrl-C and SIGTERM finish the step, save, and say how to go on; the result is the same as without the interruption.
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
    advice = f"the model is in {folder / 'model'}; try: {task.command} --model {folder} {task.example}"
    console.print(advice, soft_wrap=True, highlight=False, markup=False)
