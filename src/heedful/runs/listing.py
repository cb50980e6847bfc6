"""List of the runs below a folder: how far each is, its scores, its size and its last change."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.checkpoint.lock import LOCK, is_claimed
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, checkpoint_folders, read_best, step_of
from heedful.errors import InputError
from heedful.storage.manifest import MANIFEST, check_sizes
from heedful.storage.paths import no_folder
from heedful.train.log_file import LOG, VALID, logged_scores, records, result

if TYPE_CHECKING:
    from heedful.tasks.task import Scores

State = Literal["finished", "interrupted", "running", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """Summary of a run.

    Attributes:
        folder: its folder.
        state: "running" while a process trains it; "damaged" if a checkpoint or the model lacks files or bytes.
        update: the updates that it has made.
        scores: the scores of its final model, or of its last validation; empty without one.
        bytes: the size of all its files.
        changed: when a file of it last changed, in seconds since 1970.
    """

    folder: Path
    state: State
    update: int
    scores: "Scores"
    bytes: int
    changed: float


def find_runs(folder: Path) -> Iterator[Path]:
    """Find the runs in and below a folder, in the order of their names; links are not followed.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        run = next((place for deep in ("*", "*/*") for place in sorted(Path().glob(deep)) if is_run(place)), None)
        near = f", such as {run.parent}" if run else ""
        raise InputError(no_folder(folder, f"give one that holds runs{near}"))
    for place, folders, _ in os.walk(folder):
        folders.sort()
        if is_run(Path(place)):
            folders.clear()
            yield Path(place)


def is_run(folder: Path) -> bool:
    """True if a folder is the folder of a run that has begun."""
    return (folder / LOCK).is_file() and ((folder / CHECKPOINTS).is_dir() or (folder / LOG).is_file())


def require_run(folder: Path) -> None:
    """Check that a folder is the folder of a run.

    Raises:
        InputError: it is not.
    """
    if not folder.is_dir():
        raise InputError(no_folder(folder, "`heedful runs list FOLDER` shows the runs below one"))
    if not is_run(folder):
        inside = next((place for place in sorted(folder.iterdir()) if is_run(place)), None)
        remedy = f"give {inside}" if inside else "`heedful runs list FOLDER` shows the runs below one"
        raise InputError(f"{folder}: this is not the folder of a run; {remedy}")


def file_states(folder: Path) -> Iterator[os.stat_result]:
    """Yield the states of all files below a folder, links as such; what a training removes meanwhile is left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield Path(place, name).lstat()


def summary(run: Path) -> RunSummary:
    """Summarise a run, without reading its tensors."""
    states = list(file_states(run))
    steps = list(map(step_of, checkpoint_folders(run)))
    logged = records(run / LOG)
    ended = final_result(run)
    validated = [record["update"] for record in logged if any(key.startswith(VALID) for key in record)]
    final = {key: value for key, value in ended.items() if key != "update"}
    last = logged_scores(run, validated[-1]) if validated else None
    update = max([*steps, *(record["update"] for record in logged)], default=0)
    return RunSummary(
        folder=run,
        state=state_of(run, bool(ended)),
        update=ended.get("update", update),
        scores=final or last or {},
        bytes=sum(state.st_size for state in states),
        changed=max((state.st_mtime for state in states), default=0.0),
    )


def final_result(run: Path) -> dict[str, Any]:
    """Return the result that a run wrote at its end; empty before that, and once a newer checkpoint is there."""
    found = result(run)
    return {} if found.get("update", 0) < max(map(step_of, checkpoint_folders(run)), default=0) else found


def state_of(run: Path, ended: bool) -> State:
    """Find the state of a run, by its lock, the sizes of its files, and its result."""
    if is_claimed(run):
        return "running"
    model = [run / "model"] if ended else []
    try:
        for folder in (*checkpoint_folders(run), *model):
            check_sizes(folder)
        read_best(run / CHECKPOINTS / BEST)
    except InputError:
        return "damaged"
    return "finished" if ended and (run / "model" / MANIFEST).is_file() else "interrupted"
