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

    from heedful.tools.replay import ReplayedUpdate, TensorStatistics


def doctor() -> None:
    """Measure how fast this machine is, and report what would make it faster. This takes a few seconds."""
    from rich.console import Console
    from rich.table import Table

    from heedful.machine import prepare_process
    from heedful.machine.doctor import CHECKS

    prepare_process()  # so that the checks run with the same settings as the commands
    with show_progress("measuring", "checks", len(CHECKS)) as progress:
        findings = [check() for check in progress.over(CHECKS)]
    table = Table("", "found", "advice", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.subject, finding.result, finding.advice or "-")
    Console(highlight=False).print(table)


def verify(
    model: Annotated[str, typer.Argument(help="Model or run folder, the name of a bundled model, or hf:OWNER/NAME.")],
    seed: Annotated[int, typer.Option(help="Random seed; a different seed gives different texts.")] = 0,
) -> None:
    """Check that batching, padding, caching, search, interruption and multi-process runs do not change the results.

    Each line compares two results that should be the same, measured on the
    model itself with random texts: it shows the largest difference, and the
    difference that rounding allows. The exit code is 1 if a check fails.
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
    others = counts["does not apply"]
    verb = "does" if others == 1 else "do"
    typer.echo(f"{counts['passed']} passed, {counts['failed']} failed, {others} {verb} not apply")
    raise typer.Exit(1 if counts["failed"] else 0)


def replay(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    update: Annotated[int, typer.Argument(min=1, help="Number of the update.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the recipe's data files.",
            show_default="where the run found them",
            callback=folder_to_read,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute one update of a run, and show the magnitude of every tensor.

    The command starts from the newest checkpoint before the update, so the
    result is exactly that of the run. The run stays unchanged. The magnitudes
    show where an infinite or NaN loss or gradient comes from.
    """
    from rich.console import Console

    from heedful.tools.replay import replay as compute
    from heedful.tools.runs import require_run

    require_run(run)
    replayed = compute(run, update, Console(stderr=True), data)
    typer.echo(json.dumps(asdict(replayed)) if as_json else "\n".join(replay_lines(replayed)))


def replay_lines(update: "ReplayedUpdate") -> list[str]:
    lines = []
    for index, batch in enumerate(update.batches):
        examples = ", ".join(map(str, batch.examples))
        loss = f"loss {batch.loss:.6g} (sum over the batch)"
        lines += [f"batch {index}, epoch {update.epoch}: {loss}; examples {examples}", ""]
        lines += [*size_table("tensor", batch.tensors), ""]
    lines += [*size_table("gradient", update.gradients), ""]
    logged = ""
    if update.logged_norm is not None:
        logged = ", bit for bit as in the log"
        if update.logged_norm != update.norm:
            logged = (
                f"; the log has {update.logged_norm:.6g}, probably because the machine, the torch version, or the "
                "number of threads or processes is different"
            )
    lines.append(f"update {update.number}: gradient norm before clipping: {update.norm:.6g}{logged}")
    if first := update.first_not_finite():
        origin, tensor = first
        return [*lines, f"the first tensor that is not finite: {tensor.name} in {origin}"]
    return [*lines, "all tensors are finite"]


def size_table(title: str, rows: "Sequence[TensorStatistics]") -> list[str]:
    width = max(len(title), *(len(row.name) for row in rows))
    shapes = [" x ".join(map(str, row.shape)) for row in rows]
    wide = max(len("shape"), *map(len, shapes))
    head = f"{title:{width}}  {'shape':>{wide}}  {'RMS':>9}  {'largest':>9}  not finite"
    return [head] + [
        f"{row.name:{width}}  {shape:>{wide}}  {row.rms:9.3g}  {row.largest:9.3g}  {row.not_finite or '':>10}"
        for row, shape in zip(rows, shapes, strict=True)
    ]
