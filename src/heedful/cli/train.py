"""`heedful train`: train a model from a recipe, or resume an interrupted run."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Data, Overrides, run_folder

if TYPE_CHECKING:
    from heedful.config.schema import Recipe


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a TOML file, or a folder with a config.toml.")],
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; if it contains an interrupted run, training resumes.",
            show_default="runs/RECIPE-NAME",
            callback=run_folder,
        ),
    ] = None,
    overrides: Overrides = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of processes on this machine that share the batches of each update (data parallelism). "
            "For several machines, use torchrun.",
        ),
    ] = 1,
    requeue: Annotated[
        bool,
        typer.Option(
            "--requeue",
            help="Exit with code 75 after a signal other than Ctrl-C, so that a supervisor restarts the run.",
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
            help="Setting that may differ from that of the run to resume, such as optimizer.lr. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Train a model from a recipe, or resume an interrupted run.

    Ctrl-C saves a checkpoint and prints the command that resumes the run. An
    interrupted run ends with exactly the same model as an uninterrupted one.
    """
    from rich.console import Console

    from heedful.cli.stopping import Stopping, exit_code
    from heedful.config.load import load_recipe
    from heedful.distributed.reducer import end_process, is_rank_zero, launched_by_torchrun
    from heedful.training.loop import train as run
    from heedful.training.resume import ResumeOptions

    settings = load_recipe(recipe, overrides or (), data)
    folder = out or Path("runs") / settings.name
    console = Console(stderr=True)
    if processes > 1 and not launched_by_torchrun():
        raise typer.Exit(exit_code(in_processes(settings, processes), requeue))
    with Stopping(requeue):
        outcome = run(settings, folder, console, resume_options=ResumeOptions(strict, tuple(allowed or ())))
    if is_rank_zero():
        if outcome.exit_code:
            console.print(f"stopped and saved after update {outcome.update}; the same command resumes the run:")
            command = f"  {shlex.join(['heedful', *sys.argv[1:]])}"
            console.print(command, soft_wrap=True, highlight=False, markup=False)
        else:
            advice = f"the model is in {folder / 'model'}; try: {command_of_model(settings, folder)}"
            console.print(advice, soft_wrap=True, highlight=False, markup=False)
    code = exit_code(outcome.exit_code, requeue)
    if launched_by_torchrun():
        end_process(code)
    raise typer.Exit(code)


def in_processes(recipe: "Recipe", count: int) -> int:
    """Check a recipe, and start this command again in several processes; return their exit code."""
    from heedful.distributed.launch import launch
    from heedful.training.preflight import preflight
    from heedful.training.startup_checks import check_processes

    preflight(recipe)
    check_processes(recipe, count, count)
    return launch([sys.executable, "-m", "heedful", *sys.argv[1:]], count)


def command_of_model(recipe: "Recipe", folder: Path) -> str:
    """Return the command for using a run's model; it imports the modules of the user's own classes."""
    from heedful.config.user_code import custom_code
    from heedful.tasks import find_task
    from heedful.tasks.specs import usage

    command = usage(find_task(recipe.task).spec, folder)
    for module, colon, _ in (name.partition(":") for name in custom_code(recipe).values()):
        command = command.replace("heedful ", f"heedful --import {module} ", 1) if colon else command
    return command
