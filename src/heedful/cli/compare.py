"""`heedful compare`: train and measure several systems on one data set, and report."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import folder_to_read, folder_to_write


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RECIPE...",
            help="Systems: each a recipe (a TOML file, or a folder with a config.toml), or the folder of a trained run "
            "or model. NAME= gives a system another name than that of its file.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the report and the runs; an interrupted comparison goes on there.",
            callback=folder_to_write,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data files that the recipes name.",
            show_default="the folder of each recipe",
            callback=folder_to_read,
        ),
    ] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Updates that each system is trained for.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Minutes that each system is trained for at most; validation is not counted."),
    ] = None,
    parameters: Annotated[
        int | None,
        typer.Option(
            min=1, help="Parameters that each system must have; one that differs by more than 5 % is refused."
        ),
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

    The report has scores with confidence intervals, tests of significance,
    sizes, speeds, memory, FLOPs, curves of the training, and outputs side by
    side. It is written after every system: report.html, which needs no
    network, report.md and report.json. The same command goes on after an
    interruption. Names, recipes and data of all systems are checked before the
    first is trained. A system that fails later is in the report with the reason,
    and the exit code is 1.
    """
    from heedful.tools.compare.comparison import ComparisonRun
    from heedful.tools.compare.setup import Budget, parse_systems

    def say(sentence: str) -> None:
        typer.echo(sentence, err=True)

    entries = parse_systems(systems, overrides or [])
    if len(entries) == 1:
        say("one system: there is nothing to compare it with; name others behind it")
    outcome = ComparisonRun(entries, Budget(updates, minutes, parameters), out, data, say).run()
    if outcome.is_interrupted:
        say(f"stopped and saved; the same command goes on from there:\n  {shlex.join(['heedful', *sys.argv[1:]])}")
    typer.echo(f"{out / 'report.html'}: open it in a browser; report.md and report.json are beside it")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
