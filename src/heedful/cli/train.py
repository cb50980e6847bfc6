"""`heedful train`: train a model as a recipe says, or resume an interrupted run."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Data, Overrides, folder_to_write

if TYPE_CHECKING:
    from heedful.config.schema import Recipe


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a TOML file, or a folder with a config.toml.")],
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run; if it holds an interrupted run, training resumes.",
            show_default="runs/NAME-OF-THE-RECIPE",
            callback=folder_to_write,
        ),
    ] = None,
    overrides: Overrides = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes on this machine that share the batches of each update (data parallelism). "
            "For several machines use torchrun.",
        ),
    ] = 1,
    requeue: Annotated[
        bool,
        typer.Option(
            "--requeue",
            help="Exit with code 75 after a signal other than Ctrl-C, so that a supervisor starts it again.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop if the newest checkpoint is damaged, instead of resuming from an older one."
        ),
    ] = False,
    allowed: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-change",
            metavar="KEY",
            help="Resume although this setting has changed, such as optimizer.lr. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Train a model as a recipe says, or resume a run that was interrupted.

    Ctrl-C saves a checkpoint and prints the command that resumes the run. An
    interrupted run ends with exactly the same model as one without a break.
    """
    from rich.console import Console

    from heedful.cli.stopping import Stopping, exit_code
    from heedful.config.load import load_recipe
    from heedful.distributed import end_process, is_rank_zero, of_torchrun
    from heedful.training.loop import train as run
    from heedful.training.resume import Resumption

    settings = load_recipe(recipe, overrides or (), data)
    folder = out or Path("runs") / settings.name
    console = Console(stderr=True)
    if processes > 1 and not of_torchrun():
        raise typer.Exit(exit_code(in_processes(settings, processes), requeue))
    with Stopping(requeue):
        outcome = run(settings, folder, console, resumption=Resumption(strict, tuple(allowed or ())))
    if is_rank_zero():
        if outcome.exit_code:
            console.print(f"stopped and saved after update {outcome.update}; the same command goes on from there:")
            command = f"  {shlex.join(['heedful', *sys.argv[1:]])}"
            console.print(command, soft_wrap=True, highlight=False, markup=False)
        else:
            advice = f"the model is in {folder / 'model'}; try: {command_of_model(settings, folder)}"
            console.print(advice, soft_wrap=True, highlight=False, markup=False)
    code = exit_code(outcome.exit_code, requeue)
    if of_torchrun():
        end_process(code)
    raise typer.Exit(code)


def in_processes(recipe: "Recipe", count: int) -> int:
    """Check a recipe, and start this command again in several processes; return the exit code of all."""
    from heedful.distributed.launch import launch
    from heedful.training.preflight import check_processes, preflight

    preflight(recipe)
    check_processes(recipe, count, count)
    return launch([sys.executable, "-m", "heedful", *sys.argv[1:]], count)


def command_of_model(recipe: "Recipe", folder: Path) -> str:
    """Return the command that uses the model of a run; it imports the modules of the user's own classes."""
    from heedful.config.user_code import own_code
    from heedful.tasks import find_task
    from heedful.tasks.task import usage

    command = usage(find_task(recipe.task), folder)
    for module, colon, _ in (name.partition(":") for name in own_code(recipe).values()):
        command = command.replace("heedful ", f"heedful --import {module} ", 1) if colon else command
    return command
