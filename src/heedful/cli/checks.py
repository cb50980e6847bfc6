"""`heedful doctor`, `verify` and `replay`: check this machine, the results of a model, and an update of a run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import AsJson, folder_to_read
from heedful.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heedful.tools.replay import Measured, ReplayedUpdate


def doctor() -> None:
    """Measure how fast this machine computes, and say what would make it faster. It takes some seconds."""
    from rich.console import Console
    from rich.table import Table

    from heedful.machine import prepare_process
    from heedful.machine.doctor import CHECKS

    prepare_process()  # so that the checks measure with the settings that commands compute with
    with show_progress("measuring", "checks", len(CHECKS)) as progress:
        findings = [check() for check in progress.over(CHECKS)]
    table = Table("", "found", "advice", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.subject, finding.found, finding.advice or "-")
    Console(highlight=False).print(table)


def verify(
    model: Annotated[str, typer.Argument(help="Folder of a model or of a run, or the name of a model in the box.")],
    seed: Annotated[int, typer.Option(help="Another seed verifies with other random texts.")] = 0,
) -> None:
    """Check that batches, padding, caches, searches, interruptions and processes change no result of a model.

    Each line compares two results that should be the same, measured on the
    model itself with random texts: the largest difference, and the one that
    rounding allows. The exit code is 1 if a check fails.
    """
    from heedful.checkpoint.load import load_model
    from heedful.machine import prepare_process
    from heedful.tools.verify import CHECKS, subject_of

    prepare_process(1)  # the batches are small
    loaded = load_model(model)
    subject = subject_of(loaded, seed)
    width = max(len(check.name) for check in CHECKS)
    counts = {"passed": 0, "failed": 0, "does not apply": 0}
    for check in CHECKS:
        difference = check.measure(subject, loaded)
        result = "does not apply" if difference is None else "passed" if check.passes(difference) else "failed"
        counts[result] += 1
        size = "" if difference is None else f"{difference:.2g}"
        typer.echo(f"{check.name:{width}}  {size:>8}  allowed {check.limit:<5g}  {result}")
    typer.echo(f"{counts['passed']} passed, {counts['failed']} failed, {counts['does not apply']} do not apply")
    raise typer.Exit(1 if counts["failed"] else 0)


def replay(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    update: Annotated[int, typer.Argument(min=1, help="Number of the update.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data files that the recipe names.",
            show_default="where the run found them",
            callback=folder_to_read,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute one update of a run again, and show the size of every tensor on the way.

    It begins at the newest checkpoint before the update, so that the result
    is exactly that of the run, which stays as it is. So one sees where a
    loss or a gradient that is not finite comes from.
    """
    from rich.console import Console

    from heedful.tools.replay import replay as compute

    replayed = compute(run, update, Console(stderr=True), data)
    typer.echo(json.dumps(asdict(replayed)) if as_json else "\n".join(replay_lines(replayed)))


def replay_lines(update: "ReplayedUpdate") -> list[str]:
    lines = []
    for place, batch in enumerate(update.batches):
        examples = ", ".join(map(str, batch.examples))
        lines += [f"batch {place}, epoch {update.epoch}: loss {batch.loss:.6g}; examples {examples}", ""]
        lines += [*size_table("tensor", batch.tensors), ""]
    lines += [*size_table("gradient", update.gradients), ""]
    logged = ""
    if update.logged_norm is not None:
        logged = ", as in the log to the last bit"
        if update.logged_norm != update.norm:
            logged = (
                f"; the log has {update.logged_norm:.6g}: another machine, torch, or number of threads or processes"
            )
    lines.append(f"update {update.number}: norm of the gradient before clipping {update.norm:.6g}{logged}")
    if strange := update.first_not_finite():
        place, tensor = strange
        return [*lines, f"the first tensor that is not finite: {tensor.name} of {place}"]
    return [*lines, "all tensors are finite"]


def size_table(title: str, rows: "Sequence[Measured]") -> list[str]:
    width = max(len(title), *(len(row.name) for row in rows))
    shapes = [" x ".join(map(str, row.shape)) for row in rows]
    wide = max(len("shape"), *map(len, shapes))
    head = f"{title:{width}}  {'shape':>{wide}}  {'RMS':>9}  {'largest':>9}  not finite"
    return [head] + [
        f"{row.name:{width}}  {shape:>{wide}}  {row.rms:9.3g}  {row.largest:9.3g}  {row.not_finite or '':>10}"
        for row, shape in zip(rows, shapes, strict=True)
    ]
