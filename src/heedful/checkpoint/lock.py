"""File lock of a run folder: only one process can write to a run."""

import errno
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor

from heedful.checkpoint.run_layout import LOCK
from heedful.errors import InputError, RunError


class Claim:
    """Claim to a run folder: locks on the folder and its lock file, held until `release` or until the process ends.

    The lock on the folder persists even if somebody deletes the lock file. If the file system cannot lock folders, the
    lock file alone keeps others out.
    """

    def __init__(self, run_folder: Path) -> None:
        self.folder = run_folder
        self._identity = run_folder.stat()
        self._descriptors: list[int] = []
        try:
            # The lock file comes last, since `check` compares the last descriptor with the file.
            for lock in (_lock_folder, _lock_file):
                self._descriptors += lock(run_folder)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Check that the folder has not been moved since it was claimed, and that no other process has claimed it."""
        # It is not enough that the path exists: another folder may have taken the place of the claimed one.
        try:
            moved = not os.path.samestat(self.folder.stat(), self._identity)
        except OSError:
            moved = True
        if moved:
            raise RunError(f"the run folder {self.folder} was moved or removed during training: move it back")
        try:
            replaced = not os.path.samestat((self.folder / LOCK).lstat(), os.fstat(self._descriptors[-1]))
        except FileNotFoundError:
            try:  # somebody has deleted the lock file: create it again, unless another process did so first
                self._descriptors += _lock_file(self.folder)
                replaced = False
            except (InputError, OSError):
                replaced = True
        if replaced:
            raise RunError(f"another process has replaced {LOCK} in {self.folder}: stop one of the two processes")

    def release(self) -> None:
        for descriptor in reversed(self._descriptors):
            os.close(descriptor)
        self._descriptors.clear()


@contextmanager
def claim(run_folder: Path) -> Iterator[Claim]:
    """Create a run folder or reuse an existing one, and keep other training processes out of it within the block.

    The lock is released at the end of the block, or when the process ends, even if it is killed.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(run_folder)
        run_claim = Claim(run_folder)
    except OSError as error:
        raise InputError(f"{run_folder} cannot be used as a run folder ({error.strerror}): choose another") from error
    try:
        yield run_claim
    finally:
        run_claim.release()


def is_claimed(run_folder: Path) -> bool:
    """Return True if a process holds the claim to a run folder; the folder and its lock file are not changed."""
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
    except OSError:  # only a process that may write to the lock file can test its lock
        return False
    try:
        return not _lock(descriptor)
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)


def check_claimable(run_folder: Path) -> None:
    """Check that a run could use a folder, without creating anything."""
    # Missing folders would be created inside the nearest existing one.
    existing = next(folder for folder in (run_folder, *run_folder.absolute().parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{run_folder}: cannot be used as a run folder ({existing} is not writable); choose another")
    if existing == run_folder:
        refuse_foreign(run_folder)


def refuse_foreign(run_folder: Path) -> None:
    """Raise an error unless a folder is empty or is a heedful run."""
    if any(run_folder.iterdir()) and not (run_folder / LOCK).is_file():
        raise InputError(
            f"{run_folder}: this folder is not empty and is not a heedful run; choose another folder for the run"
        )


def _lock(descriptor: int) -> bool:
    """Lock an open file or folder; return False if another process holds its lock."""
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno == errno.ENOSYS:  # the system has no file locks, so nothing can keep others out
            return True
        raise


def _lock_folder(run_folder: Path) -> list[int]:
    """Lock a folder; return its descriptor in a list, or [] if folders cannot be locked, as on Windows and NFS."""
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
    """Create and lock the lock file of a folder, record its holder in it, and return its descriptor in a list."""
    path = run_folder / LOCK
    # The file is truncated below, and a link could lead to any of the user's files.
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} is a link or not a plain file, so it cannot be the lock file of a run: remove it")
    # Not with O_TRUNC: as long as another process holds the lock, the file names it, and the error quotes that name.
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
    try:  # on Windows, a file that another process has locked cannot be read
        holder = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        holder = ""
    return InputError(
        f"{run_folder} is in use by {holder or 'another training run'}: wait for it, stop it, or choose another folder"
    )
