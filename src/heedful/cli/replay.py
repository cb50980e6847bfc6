"""`heedful replay`: compute an update of a run again and show the size of every tensor on the way."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import folder_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

from heedful.tools.replay import Measured, ReplayedUpdate


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all digits.")] = False,
) -> None:
    """Compute one update of a run again, and show the size of every tensor on the way.

    It begins at the newest checkpoint before the update, so that the result
    is exactly that of the run, which stays as it is. So one sees where a
    loss or a gradient that is not finite comes from.
    """
    from rich.console import Console

    from heedful.tools.replay import replay as compute

    found = compute(run, update, Console(stderr=True), data)
    typer.echo(json.dumps(asdict(found)) if as_json else "\n".join(lines(found)))


def lines(found: "ReplayedUpdate") -> list[str]:
    """Format a replayed update for readers: a table for each batch, one of the gradients, and a conclusion."""
    text = []
    for place, batch in enumerate(found.batches):
        examples = ", ".join(map(str, batch.examples))
        text += [f"batch {place}, epoch {found.epoch}: loss {batch.loss:.6g}; examples {examples}", ""]
        text += [*table("tensor", batch.tensors), ""]
    text += [*table("gradient", found.gradients), ""]
    text.append(f"update {found.number}: norm of the gradient before clipping {found.norm:.6g}{compared(found)}")
    if strange := found.first_not_finite():
        place, tensor = strange
        text.append(f"the first tensor that is not finite: {tensor.name} of {place}")
    else:
        text.append("all tensors are finite")
    return text


def compared(found: "ReplayedUpdate") -> str:
    """Say how the norm of the gradient compares with that in the log of the run; nothing if it is not there."""
    if found.logged_norm is None:
        return ""
    if found.logged_norm == found.norm:
        return ", as in the log to the last bit"
    return f"; the log has {found.logged_norm:.6g}: another machine, torch, or number of threads or processes"


def table(title: str, rows: "Sequence[Measured]") -> list[str]:
    """Format the sizes of tensors as an aligned table."""
    width = max(len(title), *(len(row.name) for row in rows))
    shapes = [" x ".join(map(str, row.shape)) for row in rows]
    wide = max(len("shape"), *map(len, shapes))
    head = f"{title:{width}}  {'shape':>{wide}}  {'RMS':>9}  {'largest':>9}  not finite"
    return [head] + [
        f"{row.name:{width}}  {shape:>{wide}}  {row.rms:9.3g}  {row.largest:9.3g}  {row.not_finite or '':>10}"
        for row, shape in zip(rows, shapes, strict=True)
    ]
