"""File lock of a run folder: only one process can write to a run."""

import errno
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import InputError, RunError

LOCK = "heedful.lock"  # also marks a folder as the folder of a run


class Claim:
    """Claim of a process to a run folder: locks on the folder and on its lock file, held until the process ends.

    The lock on the folder outlives a lock file that somebody deletes; where a file system has none, the lock file
    alone keeps others out.

    Args:
        run_folder: The folder of the run.

    Raises:
        InputError: Another process holds a lock.
        OSError: The folder or its lock file cannot be opened.
    """

    def __init__(self, run_folder: Path) -> None:
        self.folder = run_folder
        self._descriptors = [os.open(run_folder, os.O_RDONLY | os.O_DIRECTORY)]
        self._identity = os.fstat(self._descriptors[0])
        try:
            _lock_folder(self._descriptors[0], run_folder)
            self._descriptors.append(_lock_file(run_folder))
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Check that the folder is still where it was when it was claimed, and that no other process has claimed it.

        Raises:
            RunError: The folder was moved or removed, or its lock file is another one.
        """
        try:
            moved = not os.path.samestat(self.folder.stat(), self._identity)
        except OSError:
            moved = True
        if moved:
            raise RunError(f"the run folder {self.folder} was moved or removed while the run goes on: move it back")
        try:
            replaced = not os.path.samestat((self.folder / LOCK).lstat(), os.fstat(self._descriptors[-1]))
        except FileNotFoundError:
            replaced = not self._locked_again()
        if replaced:
            raise RunError(f"another process has put its own {LOCK} into {self.folder}: stop one of the two")

    def _locked_again(self) -> bool:
        try:
            self._descriptors.append(_lock_file(self.folder))
        except (InputError, OSError):
            return False
        return True

    def release(self) -> None:
        """Give the folder up."""
        for descriptor in reversed(self._descriptors):
            os.close(descriptor)
        self._descriptors.clear()


@contextmanager
def claim(run_folder: Path) -> Iterator[Claim]:
    """Create a run folder, or take over an existing one, and lock other trainings out of it within the block.

    The lock ends with the block, and with the process however it ends.

    Raises:
        InputError: The folder holds something other than a run, another process writes to it, or rights are missing.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(run_folder)
        claimed = Claim(run_folder)
    except OSError as error:
        raise InputError(f"{run_folder} cannot be the folder of a run ({error.strerror}): choose another") from error
    try:
        yield claimed
    finally:
        claimed.release()


def is_claimed(run_folder: Path) -> bool:
    """True if a process holds the claim to a run folder at present; nothing is changed.

    Raises:
        OSError: The folder cannot be opened.
    """
    import fcntl

    descriptors = [os.open(run_folder, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        _lock_folder(descriptors[0], run_folder)
        descriptors.append(os.open(run_folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK))
        fcntl.lockf(descriptors[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except InputError:
        return True
    except OSError as error:  # without a lock file, or without the right to write to it, nobody is to be seen
        return error.errno == errno.EAGAIN
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return False


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


def _lock_folder(descriptor: int, run_folder: Path) -> None:
    import fcntl  # Unix only; the rest of the package does not need fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _in_use(run_folder, error) from error
    except OSError:  # a file system without locks on folders, such as NFS
        return


def _lock_file(run_folder: Path) -> int:
    import fcntl

    path = run_folder / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} is a link or no plain file, so that it cannot be the lock of a run: remove it")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        # A record lock, unlike flock, is not inherited by child processes, which may outlive a killed training.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise _in_use(run_folder, error) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode())
    return descriptor


def _in_use(run_folder: Path, error: OSError) -> InputError:
    path = run_folder / LOCK
    known = stat.S_ISREG(path.lstat().st_mode) if os.path.lexists(path) else False
    holder = path.read_text(encoding="utf-8", errors="replace").strip() if known else ""
    return InputError(
        f"{run_folder} is in use by {holder or 'another training'} ({error.strerror}): "
        "wait for it, stop it, or choose another folder"
    )
