"""`heedful compare`: train and measure several systems on one data set, and write a report."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import folder_to_read, folder_to_write
from heedful.cli.output import warn


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RECIPE...",
            help="Systems: each is a recipe (a TOML file, or a folder with a config.toml) or the folder of a finished "
            "run or a model. NAME= gives a system a name other than its file's.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the report and the runs; an interrupted comparison resumes there.",
            callback=folder_to_write,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the recipes' data files.",
            show_default="the folder of each recipe",
            callback=folder_to_read,
        ),
    ] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Number of updates to train each system.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Maximum number of minutes to train each system, not counting validation."),
    ] = None,
    parameters: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parameters that each system must have, within 5%."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[NAME:]KEY=VALUE",
            help="Change a setting of all recipes, such as train.seed=2, or of one system, such as "
            "wide:model.d_model=512. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Train several systems on the same data, with the same budget, and write a report that compares them.

    The report shows scores with confidence intervals, significance tests,
    sizes, speeds, memory, FLOPs, training curves, and outputs side by side. It
    is updated after every system, in three formats: report.html (which works
    offline), report.md and report.json. The same command resumes after an
    interruption.
    Names, recipes and data of all systems are checked before the first is
    trained. If a system fails later, the report gives the reason, and the exit
    code is 1.
    """
    from heedful.tools.compare.comparison import ComparisonRun
    from heedful.tools.compare.setup import Budget, parse_systems

    say = partial(typer.echo, err=True)
    entries = parse_systems(systems, overrides or [])
    if len(entries) == 1:
        warn("only one system was given, so there is nothing to compare it with; add others to the command")
    outcome = ComparisonRun(entries, Budget(updates, minutes, parameters), out, data, say).run()
    if outcome.is_interrupted:
        say(f"stopped and saved; the same command resumes the comparison:\n  {shlex.join(['heedful', *sys.argv[1:]])}")
    typer.echo(f"{out / 'report.html'}: open it in a browser; report.md and report.json are next to it")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
