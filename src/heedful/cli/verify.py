"""`heedful verify`: measure on a trained model that nothing changes its results which must not."""

from typing import Annotated

import typer


def verify(
    model: Annotated[str, typer.Argument(help="Folder of a model or of a run, or the name of a model in the box.")],
    seed: Annotated[int, typer.Option(help="Another seed verifies with other random texts.")] = 0,
) -> None:
    """Check that batches, padding, caches, searches, interruptions and processes change no result of a model.

    Each row of the table is measured on the model itself, with random
    texts: the largest difference beside the one that rounding allows. The
    exit code is 1 if a check fails.
    """
    from rich.console import Console
    from rich.table import Table

    from heedful.checkpoint.load import load_model
    from heedful.machine import prepare_process
    from heedful.verify import CHECKS, subject_of

    prepare_process(1)  # the batches are small
    loaded = load_model(model)
    subject = subject_of(loaded, seed)
    errors = Console(stderr=True)
    table = Table("the same", "largest difference", "allowed", "result")
    counts = {"passed": 0, "failed": 0, "does not apply": 0}
    for check in CHECKS:
        with errors.status(check.name):
            difference = check.measure(subject, loaded)
        result = "does not apply" if difference is None else "passed" if check.passes(difference) else "failed"
        counts[result] += 1
        table.add_row(check.name, "" if difference is None else f"{difference:.2g}", f"{check.limit:g}", result)
    Console().print(table)
    Console().print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['does not apply']} do not apply")
    raise typer.Exit(1 if counts["failed"] else 0)
