"""Disks that fail: at the k-th call of a `Storage`, in each way that a disk or a machine can."""

import errno
import math
import os
from io import BufferedWriter, FileIO
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from heedful.storage.disk import Storage


class Death(BaseException):
    """The process is gone: nothing of ours runs after it."""


class FaultyStorage(Storage):
    """Counts calls, of which number `at` may fail. Nothing is flushed: only the loss of power would tell."""

    def __init__(self, at: float = math.inf) -> None:
        self.at = at
        self.calls = 0

    def fail(self, writes: bool) -> None:
        """What happens at call `at` and after it."""

    def meet(self, writes: bool) -> None:
        self.calls += 1
        if self.calls >= self.at:
            self.fail(writes)

    @property
    def was_met(self) -> bool:
        return self.calls >= self.at

    def make_folder(self, folder: Path) -> None:
        self.meet(writes=True)
        super().make_folder(folder)

    def create(self, path: Path) -> BinaryIO:
        self.meet(writes=True)
        return BufferedWriter(FaultyFile(path, self), buffer_size=1)

    def flush(self, path: Path) -> None:
        self.meet(writes=True)

    def rename(self, old: Path, new: Path) -> None:
        self.meet(writes=True)
        super().rename(old, new)

    def remove_file(self, path: Path) -> None:
        self.meet(writes=False)
        super().remove_file(path)

    def remove_folder(self, folder: Path) -> None:
        self.meet(writes=False)
        super().remove_folder(folder)

    def list(self, folder: Path) -> list[Path]:
        self.meet(writes=False)
        return super().list(folder)


class FaultyFile(FileIO):
    """A new file; the disk may fail in the middle of each write."""

    def __init__(self, path: Path, storage: FaultyStorage) -> None:
        super().__init__(path, "xb")
        self.storage = storage

    def write(self, data: Any) -> int:
        half = len(data) // 2
        super().write(data[:half])
        self.storage.meet(writes=True)
        return half + super().write(data[half:])


class OneError(FaultyStorage):
    """One call fails; all after it work."""

    def fail(self, writes: bool) -> None:
        if self.calls == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class FullDisk(FaultyStorage):
    """From one call on nothing can be written; removing works."""

    def fail(self, writes: bool) -> None:
        if writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class DeadDisk(FaultyStorage):
    """From one call on nothing works."""

    def fail(self, writes: bool) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class KilledProcess(FaultyStorage):
    """From one call on there is nobody to make calls."""

    def fail(self, writes: bool) -> None:
        raise Death


class LostPower(KilledProcess):
    """The process is gone, and so is what was not flushed: bytes of files, and entries of folders.

    What was flushed is kept by inode. Removed and replaced files move to a folder of their own, so that no inode is
    used twice.
    """

    def __init__(self, at: float, root: Path) -> None:
        super().__init__(at)
        self.root = root
        self.removed = root.with_name("removed")
        self.removed.mkdir()
        self.files, self.folders = self.now()

    def now(self) -> tuple[dict[int, bytes], dict[int, dict[str, int]]]:
        """What the live file system says: bytes of files, entries of folders."""
        files: dict[int, bytes] = {}
        folders: dict[int, dict[str, int]] = {}
        for path in (self.root, self.removed, *self.root.rglob("*"), *self.removed.rglob("*")):
            if path.is_dir():
                folders[inode(path)] = entries(path)
            else:
                files[inode(path)] = path.read_bytes()
        return files, folders

    def flush(self, path: Path) -> None:
        super().flush(path)
        if path.is_dir():
            self.folders[inode(path)] = entries(path)
        else:
            self.files[inode(path)] = path.read_bytes()

    def rename(self, old: Path, new: Path) -> None:
        if new.is_file():
            os.link(new, self.removed / f"{self.calls}-replaced")
        super().rename(old, new)

    def remove_file(self, path: Path) -> None:
        self.meet(writes=False)
        path.rename(self.removed / str(self.calls))

    def remove_folder(self, folder: Path) -> None:
        self.meet(writes=False)
        folder.rename(self.removed / str(self.calls))

    def after(self, luck: "Luck") -> Path:
        """A folder with what is found when power is back."""
        place = self.root.with_name("after")
        self._rebuild(inode(self.root), place, luck, *self.now())
        return place

    def _rebuild(self, node: int, place: Path, luck: "Luck", *now: Any) -> None:
        files, folders = now
        if node in folders:
            place.mkdir()
            for name, child in luck.entries(self.folders.get(node, {}), folders[node]).items():
                self._rebuild(child, place / name, luck, *now)
        else:
            place.write_bytes(luck.bytes(self.files.get(node), files[node]))


class Luck:
    """Which of the things that were not flushed survive: none."""

    def entries(self, flushed: dict[str, int], live: dict[str, int]) -> dict[str, int]:
        return flushed

    def bytes(self, flushed: bytes | None, live: bytes) -> bytes:
        return flushed or b""


class EntriesFirst(Luck):
    """All entries survive and no bytes: renames overtake the data."""

    def entries(self, flushed: dict[str, int], live: dict[str, int]) -> dict[str, int]:
        return live


class Chance(Luck):
    """Some do; bytes that were not flushed may also be zeros or cut off."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def entries(self, flushed: dict[str, int], live: dict[str, int]) -> dict[str, int]:
        return self.random.choice([flushed, live])

    def bytes(self, flushed: bytes | None, live: bytes) -> bytes:
        lost = [b"", bytes(len(live)), live[: len(live) // 2], live]
        return self.random.choice(lost) if flushed is None else flushed


def inode(path: Path) -> int:
    return path.stat().st_ino


def entries(folder: Path) -> dict[str, int]:
    return {path.name: inode(path) for path in folder.iterdir()}
