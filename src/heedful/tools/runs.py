"""Run folders: list, check and compare them, and remove checkpoints that are no longer needed."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful import checkpoint  # imports torch only when one of its names is used; listing runs does not need it
from heedful.checkpoint.lock import is_claimed
from heedful.checkpoint.run_layout import (
    BEST,
    CHECKPOINTS,
    LOCK,
    RESULT,
    checkpoint_folders,
    read_best,
    read_result,
    step_of,
)
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.atomic import OUTGOING, TEMPORARY, discard, named_write_errors
from heedful.storage.complete_folder import (
    MANIFEST,
    DamagedError,
    parse_file,
    read_manifest,
    unseal,
    verify_folder,
    verify_sizes,
)
from heedful.storage.disk import DISK
from heedful.storage.paths import no_folder
from heedful.training.logger import LOG, TIMINGS, VALID, has_damaged_lines, logged_scores, records
from heedful.wording import either

if TYPE_CHECKING:
    from heedful.tasks.task import Scores


State = Literal["finished", "interrupted", "running", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    folder: Path
    # "running" while a process trains it; "damaged" if a file of a checkpoint or model is missing or has the wrong
    # size, or if the record of the best checkpoint is damaged
    state: State
    update: int  # number of updates so far
    scores: "Scores"  # of its final model or, without one, its last validation; empty if it has neither
    bytes: int  # total size of its files
    changed: float  # time of the last change to any of its files, in seconds since 1970


def find_runs(folder: Path) -> Iterator[Path]:
    """Yield the run folders in and below a folder, sorted by name. Links are not followed."""
    if not folder.is_dir():
        run = next((path for pattern in ("*", "*/*") for path in sorted(Path().glob(pattern)) if is_run(path)), None)
        near = f", such as {run.parent}" if run else ""
        raise InputError(no_folder(folder, f"give one that contains runs{near}"))
    for path, folders, _ in os.walk(folder):
        folders.sort()
        if is_run(Path(path)):
            folders.clear()
            yield Path(path)


def is_run(folder: Path) -> bool:
    """Return True if a folder is a run folder in which training has started."""
    return (folder / LOCK).is_file() and ((folder / CHECKPOINTS).is_dir() or (folder / LOG).is_file())


def require_run(folder: Path, *, idle: bool = False) -> None:
    """Check that a folder is a run folder and, if `idle` is True, that no process is training the run."""
    if not folder.is_dir():
        raise InputError(no_folder(folder, "`heedful runs list FOLDER` lists the runs below FOLDER"))
    if not is_run(folder):
        near = [path for path in sorted(folder.iterdir()) if is_run(path)] or [folder.parent] * is_run(folder.parent)
        remedy = f"give {either(near)}" if near else "`heedful runs list FOLDER` lists the runs below FOLDER"
        raise InputError(f"{folder}: not a run folder; {remedy}")
    if idle and is_claimed(folder):
        raise InputError(f"{folder}: is still being trained; wait until training ends")


def file_states(folder: Path) -> Iterator[os.stat_result]:
    """Yield the status of all files below a folder; links are not followed, and files that disappear are skipped."""
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield Path(path, name).lstat()


def summary(run: Path) -> RunSummary:
    """Summarise a run, without reading its tensors."""
    states = list(file_states(run))
    logged = records(run / LOG)
    ended = final_result(run)
    validated = [record["update"] for record in logged if any(key.startswith(VALID) for key in record)]
    scores = {key: value for key, value in ended.items() if key != "update"}
    if not scores and validated:
        scores = logged_scores(run, validated[-1])
    steps = map(step_of, checkpoint_folders(run))
    update = max([*steps, *(record["update"] for record in logged)], default=0)
    return RunSummary(
        folder=run,
        state=state_of(run, bool(ended)),
        update=ended.get("update", update),
        scores=scores or {},
        bytes=sum(state.st_size for state in states),
        changed=max((state.st_mtime for state in states), default=0.0),
    )


def final_result(run: Path) -> dict[str, Any]:
    """Return the result that a run wrote when it ended; empty if it has not ended, or if a newer checkpoint exists."""
    ended = read_result(run)
    newest = max(map(step_of, checkpoint_folders(run)), default=0)
    return ended if ended.get("update", 0) >= newest else {}


def state_of(run: Path, ended: bool) -> State:
    """Return the state of a run, without reading its tensors; `ended` is True if it has written its final result."""
    if is_claimed(run):
        return "running"
    try:
        for folder in (*checkpoint_folders(run), *([run / "model"] if ended else [])):
            verify_sizes(folder)
        read_best(run / CHECKPOINTS / BEST)
    except InputError:
        return "damaged"
    return "finished" if ended and (run / "model" / MANIFEST).is_file() else "interrupted"


def damages(run: Path) -> Iterator[str]:
    """Check the checksums of a run's files, and the formats of its logs and result; yield each problem."""
    require_run(run)
    for folder in sealed_folders(run):
        if reason := damage_of(folder):
            yield f"{folder.relative_to(run)}: {reason}"
    mark = run / CHECKPOINTS / BEST
    try:
        if mark.exists():
            parse_file(mark, unseal)
    except DamagedError as error:
        yield f"{CHECKPOINTS}/{error.reason}"
    for name in (LOG, TIMINGS):
        if has_damaged_lines(run / name):
            yield f"{name} contains lines that are not records"
    if (run / RESULT).exists() and not read_result(run):
        yield f"{RESULT} is not a valid result"


def sealed_folders(run: Path) -> list[Path]:
    """List the folders of a run that have, or should have, a manifest: its checkpoints, its model, its data."""
    data = sorted(path.parent for path in (run / "data").glob(f"*/{MANIFEST}"))
    return [*checkpoint_folders(run), *model_folder(run), *data]


def model_folder(run: Path) -> list[Path]:
    return [run / "model"] if (run / "model").exists() else []


def damage_of(folder: Path) -> str | None:
    """Describe the damage to a folder that should have a manifest; return None if it is intact."""
    try:
        step = verify_folder(folder).facts.get("step")
    except DamagedError as error:
        return error.reason
    except InputError as error:
        return str(error)
    if folder.name.startswith("step-") and step != step_of(folder):
        return "its manifest names a different step"
    return None


class Difference(NamedTuple):
    name: str  # of a setting or a result
    first: Any  # its value in the first run; None if missing
    second: Any  # its value in the second run


def setting_differences(first: Path, second: Path) -> list[Difference]:
    """List the keys in which the recipes of two runs differ."""
    for run in (first, second):
        require_run(run)
    one, other = (dict(settings_of(run)) for run in (first, second))
    return [
        Difference(key, one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def settings_of(run: Path) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a run's recipe with their keys, such as "data.train.0.source" for a list of tables."""
    for key, value in dotted(recipe_to_dict(recipe_of(run))):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from dotted({str(index): table for index, table in enumerate(value)}, f"{key}.")
        else:
            yield key, value


def results(first: Path, second: Path) -> list[Difference]:
    """List the state, update and scores of two runs, whether or not they differ."""
    one, other = summary(first), summary(second)
    rows = [Difference("state", one.state, other.state), Difference("update", one.update, other.update)]
    names = dict.fromkeys([*one.scores, *other.scores])
    return rows + [Difference(name, one.scores.get(name), other.scores.get(name)) for name in names]


def recipe_of(run: Path) -> Recipe:
    """Read the recipe of a run from the newest checkpoint in which it is intact, or from the model."""
    from heedful.checkpoint.description import read_description

    require_run(run)
    folders = [*reversed(checkpoint_folders(run)), *model_folder(run)]
    if not folders:
        raise InputError(f"{run}: has no checkpoint and no model yet; `heedful train RECIPE --out {run}` resumes it")
    for folder in folders:
        try:
            return read_description(read_manifest(folder))[0]
        except DamagedError:
            continue
    raise InputError(f"{run}: no checkpoint has an intact recipe; `heedful runs check {run}` reports the damage")


def needless(run: Path) -> list[Path]:
    """List checkpoints that are not needed, damaged ones, and leftovers of failed saves.

    The newest intact checkpoint is needed, and so is the best one. Until the run has an intact final model, the
    second-newest intact checkpoint and those that the final average may need are also kept. The run must be idle.
    """
    require_run(run, idle=True)
    return needless_folders(run)


def prune(run: Path) -> list[Path]:
    """Remove the folders that `needless` lists, while the run is locked against training; return them."""
    require_run(run, idle=True)
    with checkpoint.claim(run):
        folders = needless_folders(run)
        for path in folders:
            with named_write_errors(path):
                discard(DISK, path)
    return folders


def needless_folders(run: Path) -> list[Path]:
    steps = [step_of(folder) for folder in checkpoint_folders(run) if damage_of(folder) is None]
    if not steps:
        raise InputError(f"{run}: has no intact checkpoint; nothing is removed until it has one")
    checkpoints = checkpoint.Checkpoints(run, keep_last=1)
    needed = {steps[-1]} | ({checkpoints.best.step} if checkpoints.best else set())
    if not final_result(run) or damage_of(run / "model") is not None:
        train = recipe_of(run).train
        regular = [step for step in steps if step % train.save_every == 0]
        needed |= {*steps[-2:], *regular[-train.average_last :]}

    paths = set(map(checkpoints.path, needed))
    folders = [path for path in sorted((run / CHECKPOINTS).iterdir()) if path.is_dir() and path not in paths]
    # heedful did not create folders with other names, so they are left alone.
    return [path for path in folders if path.name.startswith(("step-", TEMPORARY, OUTGOING))]


def size(folder: Path) -> int:
    return sum(state.st_size for state in file_states(folder))
