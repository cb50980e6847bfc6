"""Run folders from outside: listed, checked, compared, and freed of checkpoints that nothing needs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful import checkpoint  # which imports what it names when that is used: a list of runs needs no torch
from heedful.checkpoint.lock import LOCK, is_claimed
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, checkpoint_folders, read_best, step_of
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.atomic import OUTGOING, TEMPORARY, discard, named_write_errors
from heedful.storage.disk import DISK
from heedful.storage.manifest import MANIFEST, DamagedError, check, check_sizes, parse, read_manifest, unseal
from heedful.storage.paths import no_folder
from heedful.training.logger import LOG, RESULT, TIMINGS, VALID, has_damaged_lines, logged_scores, records, result

if TYPE_CHECKING:
    from heedful.tasks.task import Scores


State = Literal["finished", "interrupted", "running", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    folder: Path
    state: State  # "running" while a process trains it; "damaged" if a checkpoint or the model lacks files or bytes
    update: int
    scores: "Scores"  # the scores of its final model, or of its last validation; empty without one
    bytes: int  # of all its files
    changed: float  # when a file of it last changed, in seconds since 1970


def find_runs(folder: Path) -> Iterator[Path]:
    """Find the runs in and below a folder, in the order of their names; links are not followed."""
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
    """Check that a folder is the folder of a run."""
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
    ended = result(run)
    newest = max(map(step_of, checkpoint_folders(run)), default=0)
    return ended if ended.get("update", 0) >= newest else {}


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


def damages(run: Path) -> Iterator[str]:
    """Compare every file of a run with the checksums that were saved, and every log with its format."""
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


class Difference(NamedTuple):
    """Setting or result that differs: its name, and its value in each of two runs; None where one has none."""

    name: str
    first: Any
    second: Any


def setting_differences(first: Path, second: Path) -> list[Difference]:
    """List the keys in which the recipes of two runs differ."""
    for run in (first, second):
        require_run(run)
    one, other = (dict(dotted(recipe_to_dict(recipe_of(run)))) for run in (first, second))
    return [
        Difference(key, one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def results(first: Path, second: Path) -> list[Difference]:
    """List state, update and scores of two runs, equal ones as well."""
    one, other = summary(first), summary(second)
    rows = [Difference("state", one.state, other.state), Difference("update", one.update, other.update)]
    names = dict.fromkeys([*one.scores, *other.scores])
    return rows + [Difference(name, one.scores.get(name), other.scores.get(name)) for name in names]


def recipe_of(run: Path) -> Recipe:
    """Read the recipe of a run, from its newest checkpoint that has an intact one, or from its model."""
    from heedful.checkpoint.model_folder import read_description

    require_run(run)
    saved = [*reversed(checkpoint_folders(run)), *([run / "model"] if (run / "model").exists() else [])]
    if not saved:
        raise InputError(f"{run}: has no checkpoint and no model yet; `heedful train RECIPE --out {run}` trains it on")
    for folder in saved:
        try:
            return read_description(read_manifest(folder))[0]
        except DamagedError:
            continue
    raise InputError(f"{run} holds no checkpoint with an intact recipe; `heedful runs check {run}` tells what is wrong")


def needless(run: Path) -> list[Path]:
    """List what can go of a run that nobody trains: see `unneeded`."""
    require_idle_run(run)
    return unneeded(run)


def require_idle_run(run: Path) -> None:
    require_run(run)
    if is_claimed(run):
        raise InputError(f"{run} is being trained: wait until it ends")


def unneeded(run: Path) -> list[Path]:
    """List checkpoints that nothing needs, damaged ones that were put aside, and parts of broken saves.

    Needed are the newest intact checkpoint and the best one; while the run has no intact final model, also the second
    newest, and those that its end may average.
    """
    steps = [step_of(folder) for folder in checkpoint_folders(run) if damage_of(folder) is None]
    if not steps:
        raise InputError(f"{run} holds no intact checkpoint: nothing is removed before one is there")
    checkpoints = checkpoint.Checkpoints(run, keep_last=1)
    needed = {steps[-1]} | ({checkpoints.best.step} if checkpoints.best else set())
    if not final_result(run) or damage_of(run / "model") is not None:
        train = recipe_of(run).train
        regular = [step for step in steps if step % train.save_every == 0]
        needed |= {*steps[-2:], *regular[-train.average_last :]}

    paths = set(map(checkpoints.path, needed))
    folders = [path for path in sorted((run / CHECKPOINTS).iterdir()) if path.is_dir() and path not in paths]
    return [path for path in folders if path.name.startswith(("step-", TEMPORARY, OUTGOING))]  # others are not ours


def prune(run: Path) -> list[Path]:
    """Remove what `needless` lists, while no other process can train the run; return what was removed."""
    require_idle_run(run)
    with checkpoint.claim(run):
        folders = unneeded(run)
        for path in folders:
            with named_write_errors(path):
                discard(DISK, path)
    return folders


def size(folder: Path) -> int:
    return sum(state.st_size for state in file_states(folder))
