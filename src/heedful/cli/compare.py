"""`heedful compare`: train and measure several systems on one data set, and report."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import folder_to_read, folder_to_write

if TYPE_CHECKING:
    from heedful.metrics import Comparison, Resampled


def comparison_lines(baseline: str, system: str, comparisons: Sequence["Comparison"], digits: int = 2) -> list[str]:
    """Format the comparison of two systems as lines: a table with a row per score, then a verdict on each score."""
    signed = any(found.signature for found in comparisons)
    rows = [("", f"{baseline} (baseline)", system, "p-value", "signature" if signed else "")]
    for found in comparisons:
        scores = (interval(found.baseline, digits), interval(found.system, digits))
        rows.append((found.name, *scores, f"{found.p_value:7.4f}", found.signature))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*table, "", *(verdict(baseline, system, found, digits) for found in comparisons)]


def interval(found: "Resampled", digits: int) -> str:
    """Format a score with its mean and 95 % interval over bootstrap resamples."""
    return f"{found.value:6.{digits}f} ({found.mean:.{digits}f} ± {found.interval:.{digits}f})"


def verdict(baseline: str, system: str, found: "Comparison", digits: int) -> str:
    """Write a sentence on which of two systems is better, and whether the difference is statistically significant."""
    from heedful.metrics.bootstrap import SIGNIFICANT

    if found.baseline.value == found.system.value:
        return f"{found.name}: {system} and {baseline} are equal"
    better, worse = (system, baseline) if found.is_better else (baseline, system)
    difference = f"{abs(found.system.value - found.baseline.value):.{digits}f}"
    if found.is_significant:
        chance = f"is more than chance (p = {found.p_value:.4f} < {SIGNIFICANT})"
    else:
        chance = f"may be chance (p = {found.p_value:.4f}, not below {SIGNIFICANT})"
    return f"{found.name}: {better} is better than {worse} by {difference}, which {chance}"


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

    named = parse_systems(systems, overrides or [])
    if len(named) == 1:
        say("one system: there is nothing to compare it with; name others behind it")
    outcome = ComparisonRun(named, Budget(updates, minutes, parameters), out, data, say).run()
    if outcome.is_interrupted:
        say(f"stopped and saved; the same command goes on from there:\n  {shlex.join(['heedful', *sys.argv[1:]])}")
    typer.echo(f"{out / 'report.html'}: open it in a browser; report.md and report.json are beside it")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
