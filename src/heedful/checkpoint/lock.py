"""File lock of a run folder: only one process can write to a run."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from heedful.errors import InputError

LOCK = "heedful.lock"  # also marks a folder as the folder of a run


@contextmanager
def claim(run_folder: Path) -> Iterator[None]:
    """Create a run folder, or take over an existing one, and lock other trainings out of it within the block.

    The lock ends with the block, and with the process however it ends.

    Raises:
        InputError: The folder holds something other than a run, another process writes to it, or rights are missing.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(run_folder)
        file = (run_folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{run_folder} cannot be the folder of a run ({error.strerror}): choose another") from error
    with file:
        _lock(file, run_folder)
        yield


def check_claimable(run_folder: Path) -> None:
    """Check that a run could use a folder, without creating anything.

    Raises:
        InputError: The folder holds something other than a run, is a file, or rights are missing.
    """
    there = next(folder for folder in (run_folder, *run_folder.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{run_folder} cannot be the folder of a run ({there} cannot be written): choose another")
    if there == run_folder:
        refuse_foreign(run_folder)


def refuse_foreign(run_folder: Path) -> None:
    """Check that a folder is empty or belongs to a run of heedful.

    Raises:
        InputError: The folder is not empty, and no run has claimed it before.
    """
    if any(run_folder.iterdir()) and not (run_folder / LOCK).is_file():
        raise InputError(f"{run_folder} is not empty and is not a heedful run: choose another folder for the run")


def _lock(file: TextIO, run_folder: Path) -> None:
    import fcntl  # Unix only; the rest of the package does not need fcntl

    try:
        # A record lock, unlike flock, is not inherited by child processes, which may outlive a killed training.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        raise InputError(
            f"{run_folder} is in use by {file.read().strip() or 'another training'} ({error.strerror}): "
            "wait for it, stop it, or choose another folder"
        ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}\n")
    file.flush()
