"""`heedful runs`: list, check, compare and prune run folders."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from heedful.wording import counted

app = typer.Typer(
    name="runs",
    help="List, check, compare and prune run folders.",
    no_args_is_help=True,
    add_completion=False,
)

Run = Annotated[Path, typer.Argument(help="Run folder.")]


@app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="Folder to search for runs, including subfolders.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one run per line.")] = False,
) -> None:
    """List the runs below a folder: state, updates, size, time of the last change, and scores."""
    from heedful.tools.runs import find_runs, summary

    summaries = [summary(run) for run in find_runs(folder)]
    if as_json:
        for run in summaries:
            typer.echo(json.dumps({**asdict(run), "folder": str(run.folder)}))
        return
    rows = [["run", "state", "update", "MB", "changed", "scores"]]
    for run in summaries:
        scores = ", ".join(f"{name} {value:.4g}" for name, value in run.scores.items() if value is not None)
        changed = datetime.fromtimestamp(run.changed).strftime("%Y-%m-%d %H:%M")
        rows.append([str(run.folder), run.state, f"{run.update:,}", megabytes(run.bytes), changed, scores])
    typer.echo(aligned(rows) if summaries else f"no runs in {folder}")


def aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows)
    return "\n".join(line.rstrip() for line in lines)


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"


@app.command()
def check(runs: Annotated[list[Path], typer.Argument(help="Run folders.")]) -> None:
    """Compare the files in these runs with their saved checksums. The exit code is 1 if a file is damaged."""
    from heedful.tools.runs import damages, sealed_folders

    total = 0
    for run in runs:
        damaged = list(damages(run))
        total += len(damaged)
        for damage in damaged:
            typer.echo(f"{run}: {damage}")
        if not damaged:
            saved = any(folder.parent != run / "data" for folder in sealed_folders(run))
            end = "" if saved else "; the run has neither a checkpoint nor a model yet"
            typer.echo(f"{run}: all checksums match{end}")
    raise typer.Exit(min(total, 1))


@app.command()
def diff(first: Run, second: Run) -> None:
    """Compare two runs: their results, and the settings in which their recipes differ."""
    from heedful.tools.runs import results, setting_differences

    settings = setting_differences(first, second)
    rows = [[each.name, in_toml(each.first), in_toml(each.second)] for each in settings]
    rows += [
        [each.name, *("-" if value is None else str(value) for value in (each.first, each.second))]
        for each in results(first, second)
    ]
    typer.echo(aligned([["", str(first), str(second)], *rows]))
    verb = "differs" if len(settings) == 1 else "differ"
    typer.echo(f"{counted(len(settings), 'settings')} {verb}" if settings else "no setting differs")


def in_toml(value: object) -> str:
    """Format the value of a setting as in a recipe; a setting that is not set is a dash."""
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


@app.command()
def prune(
    run: Run,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the checkpoints instead of only listing them.")] = False,
) -> None:
    """Remove checkpoints that a run does not need; without --yes, only list them.

    The newest intact checkpoint and the best one are kept, and so are those
    that an interrupted run still needs for the final average. A run that is
    still training is rejected.
    """
    from heedful.tools.runs import needless, size
    from heedful.tools.runs import prune as remove

    sizes = {path: size(path) for path in needless(run)}
    for path in remove(run) if yes else sizes:
        typer.echo(f"{'removed' if yes else 'would remove'} {path} ({megabytes(sizes.get(path, 0))} MB)")
    if not sizes:
        typer.echo(f"{run}: nothing to remove")
    elif not yes:
        typer.echo(f"{megabytes(sum(sizes.values()))} MB in total; add --yes to remove these checkpoints")
