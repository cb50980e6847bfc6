"""File lock of a run folder: only one process can write to a run."""

import errno
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor

from heedful.errors import InputError, RunError

LOCK = "heedful.lock"  # also marks a folder as the folder of a run


class Claim:
    """Claim of a process to a run folder: locks on the folder and on its lock file, held until the process ends.

    The lock on the folder outlives a lock file that somebody deletes; where a file system has none, the lock file
    alone keeps others out.
    """

    def __init__(self, run_folder: Path) -> None:
        self.folder = run_folder
        self._identity = run_folder.stat()
        self._descriptors: list[int] = []
        try:
            for lock in (_lock_folder, _lock_file):
                self._descriptors += lock(run_folder)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Check that the folder is still where it was when it was claimed, and that no other process has claimed it."""
        # The folder may have been moved, and another one be in its place: both look alike by their names.
        try:
            moved = not os.path.samestat(self.folder.stat(), self._identity)
        except OSError:
            moved = True
        if moved:
            raise RunError(f"the run folder {self.folder} was moved or removed while the run goes on: move it back")
        try:
            replaced = not os.path.samestat((self.folder / LOCK).lstat(), os.fstat(self._descriptors[-1]))
        except FileNotFoundError:
            try:  # somebody has deleted the lock file: make it again, unless another process has been faster
                self._descriptors += _lock_file(self.folder)
                replaced = False
            except (InputError, OSError):
                replaced = True
        if replaced:
            raise RunError(f"another process has put its own {LOCK} into {self.folder}: stop one of the two")

    def release(self) -> None:
        for descriptor in reversed(self._descriptors):
            os.close(descriptor)
        self._descriptors.clear()


@contextmanager
def claim(run_folder: Path) -> Iterator[Claim]:
    """Create a run folder, or take over an existing one, and lock other trainings out of it within the block.

    The lock ends with the block, and with the process however it ends.
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
    """True if a process holds the claim to a run folder at present; nothing is changed."""
    try:
        for descriptor in _lock_folder(run_folder):
            os.close(descriptor)
    except InputError:
        return True
    path = run_folder / LOCK
    if path.is_symlink() or not path.is_file():
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:  # without the right to write to the lock file, its lock cannot be seen
        return False
    try:
        return not _lock(descriptor)
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)


def check_claimable(run_folder: Path) -> None:
    """Check that a run could use a folder, without creating anything."""
    there = next(folder for folder in (run_folder, *run_folder.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{run_folder} cannot be the folder of a run ({there} cannot be written): choose another")
    if there == run_folder:
        refuse_foreign(run_folder)


def refuse_foreign(run_folder: Path) -> None:
    """Check that a folder is empty or belongs to a run of heedful."""
    if any(run_folder.iterdir()) and not (run_folder / LOCK).is_file():
        raise InputError(f"{run_folder} is not empty and is not a heedful run: choose another folder for the run")


def _lock(descriptor: int) -> bool:
    """Lock an open file or folder; False if another process holds its lock."""
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno == errno.ENOSYS:  # a system without file locks, where nothing keeps others out
            return True
        raise


def _lock_folder(run_folder: Path) -> list[int]:
    """Lock a folder; return its descriptor, or none where folders have no locks, as on Windows and NFS."""
    try:
        descriptor = os.open(run_folder, os.O_RDONLY)
    except PermissionError:
        return []
    try:
        locked = _lock(descriptor)
    except OSError:
        os.close(descriptor)
        return []
    if not locked:
        os.close(descriptor)
        raise _in_use(run_folder)
    return [descriptor]


def _lock_file(run_folder: Path) -> list[int]:
    """Make and lock the lock file of a folder, and write into it who holds the lock; return its descriptor."""
    path = run_folder / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} is a link or not a plain file, so that it cannot be the lock of a run: remove it")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _lock(descriptor):
            raise _in_use(run_folder)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode())
    except BaseException:
        os.close(descriptor)
        raise
    return [descriptor]


def _in_use(run_folder: Path) -> InputError:
    path = run_folder / LOCK
    try:  # nobody else reads a locked file on Windows
        holder = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        holder = ""
    return InputError(
        f"{run_folder} is in use by {holder or 'another training'}: wait for it, stop it, or choose another folder"
    )
