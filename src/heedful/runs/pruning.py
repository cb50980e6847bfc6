"""Pruning of runs: removes checkpoints that neither the rest of a run nor its end needs."""

from collections.abc import Sequence
from pathlib import Path

from heedful.checkpoint import Checkpoints, claim
from heedful.checkpoint.lock import is_claimed
from heedful.checkpoint.run_layout import CHECKPOINTS, step_of
from heedful.errors import InputError
from heedful.runs.checking import damage_of, intact
from heedful.runs.comparing import recipe_of
from heedful.runs.listing import file_states, final_result, require_run
from heedful.storage.atomic import OUTGOING, TEMPORARY, discard, named_write_errors
from heedful.storage.disk import DISK


def needless(run: Path) -> list[Path]:
    """List what can go: checkpoints that nothing needs, damaged ones that were put aside, and parts of broken saves.

    Needed are the newest intact checkpoint and the best one; while the run has no intact final model, also the second
    newest, and those that its end may average.

    Raises:
        InputError: the folder is not that of a run, a process trains it, or no checkpoint is intact.
    """
    require_run(run)
    refuse_running(run)
    return unneeded(run)


def refuse_running(run: Path) -> None:
    """Refuse a run that a process is training.

    Raises:
        InputError: one is.
    """
    if is_claimed(run):
        raise InputError(f"{run} is being trained: wait until it ends")


def unneeded(run: Path) -> list[Path]:
    """List the folders that a run which nobody trains does not need; see `needless`.

    Raises:
        InputError: no checkpoint is intact.
    """
    checkpoints = intact(run)
    if not checkpoints:
        raise InputError(f"{run} holds no intact checkpoint: nothing is removed before one is there")
    kept = {Checkpoints(run, keep_last=1).path(step) for step in needed(run, list(map(step_of, checkpoints)))}
    return [path for path in sorted((run / CHECKPOINTS).iterdir()) if path.is_dir() and may_go(path, kept)]


def may_go(path: Path, kept: set[Path]) -> bool:
    """True if a folder beside the checkpoints of a run is ours, and not one of those that are kept."""
    return path not in kept and path.name.startswith(("step-", TEMPORARY, OUTGOING))


def needed(run: Path, steps: Sequence[int]) -> set[int]:
    """Select the intact steps of a run that it needs."""
    best = Checkpoints(run, keep_last=1).best
    kept = {steps[-1]} | ({best.step} if best else set())
    if final_result(run) and damage_of(run / "model") is None:
        return kept
    train = recipe_of(run).train
    regular = [step for step in steps if step % train.save_every == 0]
    return kept | set(steps[-2:]) | set(regular[-train.average_last :])


def prune(run: Path) -> list[Path]:
    """Remove what `needless` lists, while no other process can train the run; return what was removed.

    Raises:
        InputError: as for `needless`.
        RunError: a folder cannot be removed.
    """
    require_run(run)
    refuse_running(run)
    with claim(run):
        found = unneeded(run)
        for path in found:
            with named_write_errors(path):
                discard(DISK, path)
    return found


def size(folder: Path) -> int:
    """The size of all files in a folder, in bytes."""
    return sum(state.st_size for state in file_states(folder))
