"""One run, one folder, one writer."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from heedful.errors import InputError

LOCK = "heedful.lock"  # also the mark by which a run's folder is known


@contextmanager
def claim(run_folder: Path) -> Iterator[None]:
    """Make a run's folder, or take one that is there, and keep other trainings out of it.

    The claim ends with the block, and with the process however it ends.

    Raises:
        InputError: The folder holds something else than a run, another process writes there, or rights are missing.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        if any(run_folder.iterdir()) and not (run_folder / LOCK).is_file():
            raise InputError(f"{run_folder} is not empty and is not a heedful run: choose another folder for the run")
        file = (run_folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{run_folder} cannot be the folder of a run ({error.strerror}): choose another") from error
    with file:
        _lock(file, run_folder)
        yield


def _lock(file: TextIO, run_folder: Path) -> None:
    import fcntl  # Unix only; the rest of the package needs none of it

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
