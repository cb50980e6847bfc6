"""`heedful verify`: compare results of a model that should be equal: alone and in a batch, with and without a cache."""

from typing import Annotated

import typer


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
        found = "" if difference is None else f"{difference:.2g}"
        typer.echo(f"{check.name:{width}}  {found:>8}  allowed {check.limit:<5g}  {result}")
    typer.echo(f"{counts['passed']} passed, {counts['failed']} failed, {counts['does not apply']} do not apply")
    raise typer.Exit(1 if counts["failed"] else 0)
