"""Atomic writes of files and folders: they are written under a hidden name, flushed to disk, and renamed at the end.

Even if the process is killed or the power fails, the name refers to either the old or the new content; only a folder
that replaces another one is missing for a moment, between two renames. The next writer of the same name removes the
temporary file or folder that a killed process left. Functions raise an OSError if the file system fails;
`named_write_errors` turns it into a RunError.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from heedful.errors import InputError, RunError
from heedful.storage.complete_folder import MANIFEST, Entry, manifest_bytes
from heedful.storage.disk import DISK, Storage

TEMPORARY = ".tmp-"  # prefix of a file or folder that is being written
OUTGOING = ".old-"  # prefix of a folder that is being replaced or removed
OPEN_FILES = "/dev/fd"  # lists the open files of the process

Content = Iterable[bytes | memoryview]


class FolderWriter:
    """Writer of a folder under its temporary name; `seal` adds the manifest.

    Attributes:
        path: The temporary folder.
        entries: Manifest entries of the files that `write` has written so far, by name.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        self.path = folder.with_name(TEMPORARY + folder.name)
        self.entries: dict[str, Entry] = {}
        self._storage = storage

    def write(self, name: str, content: Content) -> None:
        """Write a new file chunk by chunk, and record its size and checksum for the manifest."""
        size, checksum = 0, 0
        make_folders(self._storage, (self.path / name).parent)
        with self._storage.create(self.path / name) as stream:
            for chunk in content:
                stream.write(chunk)
                size, checksum = size + len(chunk), zlib.crc32(chunk, checksum)
        self.entries[name] = Entry(size, f"{checksum:08x}")

    def flush(self) -> None:
        for name in self.entries:
            self._storage.flush(self.path / name)

    def seal(self, facts: Mapping[str, Any]) -> None:
        with self._storage.create(self.path / MANIFEST) as stream:
            stream.write(manifest_bytes(self.entries, facts))


@contextmanager
def atomic_file(path: Path, storage: Storage = DISK, writer: str = "") -> Iterator[BinaryIO]:
    """Write a file atomically: readers get either its old bytes or all of its new ones; an error leaves it unchanged.

    A symbolic link is followed to its target. If several processes may write the file at once, `writer` identifies this
    one: each then has a separate temporary file, which the others do not remove, even if its writer has been killed.
    """
    if is_stream(path):
        raise InputError(
            f"{path}: is a device, a pipe or an open file, which a new file would replace; give a regular file"
        )
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(TEMPORARY + writer + path.name)
    with _removed_after_error(storage, temporary):
        with storage.create(temporary) as stream:
            yield stream
        # Flush the bytes before renaming: otherwise, after a power failure, the new name could refer to an empty file.
        storage.flush(temporary)
        storage.rename(temporary, path)
    storage.flush(path.parent)


def is_stream(path: Path) -> bool:
    """Return True for a device, a named pipe, or an open file such as /dev/stdout, which a new file cannot replace."""
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return special or _descriptor(path) is not None


def open_stream(path: Path) -> BinaryIO:
    """Open a device or a pipe for writing, or continue an open file at its current position."""
    number = _descriptor(path)
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor that a path stands for, such as 1 for /dev/stdout; None for any other path."""
    name = os.path.join(path.parent, os.readlink(path)) if path.is_symlink() else str(path)
    folder, number = os.path.split(name)
    is_open = number.isdecimal() and os.path.realpath(folder) == os.path.realpath(OPEN_FILES)
    return int(number) if is_open else None


@contextmanager
def atomic_folder(folder: Path, storage: Storage = DISK) -> Iterator[FolderWriter]:
    """Write a folder atomically, replacing an existing folder of that name; missing parent folders are created.

    Files may also be written to `FolderWriter.path` by other means. After an error, the new files are removed as far as
    possible, and an earlier folder is unchanged.
    """
    if folder.exists() and folder.samefile("."):
        raise InputError(f"{folder}: is the current folder, which cannot be replaced as a whole; give a folder in it")
    writer = FolderWriter(folder, storage)
    with _removed_after_error(storage, writer.path):
        make_folders(storage, writer.path)
        yield writer
        publish(folder, storage)


def write_folder(folder: Path, files: Mapping[str, Content], facts: Mapping[str, Any], storage: Storage) -> None:
    with atomic_folder(folder, storage) as writer:
        for name, content in files.items():
            writer.write(name, content)
        writer.seal(facts)


def publish(folder: Path, storage: Storage) -> None:
    """Flush a temporary folder, and rename it to its final name; an existing folder of that name is replaced."""
    temporary, outgoing = folder.with_name(TEMPORARY + folder.name), folder.with_name(OUTGOING + folder.name)
    # Flush before the rename: the final name must not reach the disk before the files do.
    for path in (*sorted(temporary.rglob("*")), temporary):
        storage.flush(path)
    # A rename does not replace a folder that contains files, so the earlier one is renamed first.
    replaces = folder.exists()
    if replaces:
        remove(storage, outgoing)
        storage.rename(folder, outgoing)
    try:
        storage.rename(temporary, folder)
    except OSError:
        if replaces:
            storage.rename(outgoing, folder)
        raise
    storage.flush(folder.parent)
    remove(storage, outgoing)


@contextmanager
def named_write_errors(path: Path, remedy: str = "make room for it or choose another name") -> Iterator[None]:
    """Turn an OSError raised while writing into a RunError with the file or folder, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error}); {remedy}") from error


def discard(storage: Storage, folder: Path) -> None:
    """Remove a folder after renaming it, so that no process sees it half-removed under its own name."""
    outgoing = folder.with_name(OUTGOING + folder.name)
    remove(storage, outgoing)
    storage.rename(folder, outgoing)
    storage.flush(folder.parent)
    remove(storage, outgoing)


def remove_leftovers(storage: Storage, folder: Path) -> None:
    """Remove the temporary files and folders that interrupted writers left in a folder."""
    for path in storage.list(folder):
        if path.name.startswith((TEMPORARY, OUTGOING)):
            remove(storage, path)


def remove(storage: Storage, path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in storage.list(path):
            remove(storage, child)
        storage.remove_folder(path)
    elif os.path.lexists(path):
        storage.remove_file(path)


def make_folders(storage: Storage, folder: Path) -> None:
    if not folder.is_dir():
        make_folders(storage, folder.parent)
        storage.make_folder(folder)
        storage.flush(folder.parent)


@contextmanager
def _removed_after_error(storage: Storage, temporary: Path) -> Iterator[None]:
    # A killed writer may have left a temporary file or folder of this name.
    remove(storage, temporary)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            remove(storage, temporary)
        raise
