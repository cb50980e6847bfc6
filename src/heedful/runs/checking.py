"""Check of every byte of a run: which of its files are damaged."""

from collections.abc import Iterator
from pathlib import Path

from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, checkpoint_folders, step_of
from heedful.errors import InputError
from heedful.runs.listing import require_run
from heedful.storage.manifest import MANIFEST, DamagedError, check, parse, unseal
from heedful.train.log_file import LOG, RESULT, TIMINGS, has_damaged_lines, result


def damages(run: Path) -> Iterator[str]:
    """Compare every file of a run with the checksums that were saved, and every log with its format.

    Yields:
        A clause for each damaged file: its path below the run, and what is wrong.

    Raises:
        InputError: the folder is not that of a run.
    """
    require_run(run)
    for folder in sealed_folders(run):
        if reason := damage_of(folder):
            yield f"{folder.relative_to(run)}: {reason}"
    mark = run / CHECKPOINTS / BEST
    try:
        if mark.exists():
            parse(mark, unseal)
    except DamagedError as error:
        yield f"{CHECKPOINTS}/{error.reason}"
    for name in (LOG, TIMINGS):
        if has_damaged_lines(run / name):
            yield f"{name} has lines that are no records"
    if (run / RESULT).exists() and not result(run):
        yield f"{RESULT} does not hold what was saved"


def sealed_folders(run: Path) -> list[Path]:
    """The folders of a run that have a manifest, or should have one: its checkpoints, its model, its data."""
    data = sorted(path.parent for path in (run / "data").glob(f"*/{MANIFEST}"))
    return [*checkpoint_folders(run), *([run / "model"] if (run / "model").exists() else []), *data]


def damage_of(folder: Path) -> str | None:
    """Say what is wrong with a folder that has a manifest; None if every byte is the one that was saved."""
    try:
        step = check(folder).facts.get("step")
    except DamagedError as error:
        return error.reason
    except InputError as error:
        return str(error)
    if folder.name.startswith("step-") and step != step_of(folder):
        return "holds another step"
    return None


def intact(run: Path) -> list[Path]:
    """The checkpoints of a run without a damaged byte, oldest first."""
    return [folder for folder in checkpoint_folders(run) if damage_of(folder) is None]
