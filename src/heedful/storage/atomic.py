"""Atomic writing of files and folders: under a hidden name, flushed to the disk, and renamed at the end.

Whatever happens in between, a kill or the loss of power as well, the old content is there or the new one. A temporary
file or folder that a killed process left is removed by the next writer of the same name. Functions raise OSError where
the file system fails; `named_write_errors` makes it a RunError.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from heedful.errors import InputError, RunError
from heedful.storage.disk import DISK, Storage
from heedful.storage.manifest import MANIFEST, Entry, manifest_text

TEMPORARY = ".tmp-"  # prefix of a file or folder that does not have its name yet
OPEN_FILES = "/dev/fd"  # the folder in which a process finds the files that it has open
OUTGOING = ".old-"  # prefix of a folder that is about to be removed

Content = Iterable[bytes | memoryview]


class FolderWriter:
    """Writer of a folder that still has a temporary name; `seal` adds the manifest of the files that it wrote.

    Attributes:
        path: The temporary folder.
        entries: The entries of its files in the manifest.
    """

    def __init__(self, path: Path, storage: Storage) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self._storage = storage

    def write(self, name: str, content: Content) -> None:
        """Write a new file, chunk by chunk, and note its size and checksum for the manifest."""
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
            stream.write(manifest_text(self.entries, facts))


@contextmanager
def atomic_file(path: Path, storage: Storage = DISK, writer: str = "") -> Iterator[BinaryIO]:
    """Write a file atomically: readers see its old bytes or all of its new ones; after an error nothing is left.

    Of a symbolic link the file that it leads to is written. If several processes may write the file at once, `writer`
    names this one: each then has its own temporary file, which the next writer does not remove after a kill.
    """
    if is_stream(path):
        raise InputError(f"{path}: is a device, a pipe or an open file, which a new file would replace; name a file")
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(TEMPORARY + writer + path.name)
    with _removed_after_error(storage, temporary):
        with storage.create(temporary) as stream:
            yield stream
        storage.flush(temporary)
        storage.rename(temporary, path)
    storage.flush(path.parent)


def is_stream(path: Path) -> bool:
    """True if what has this name takes bytes as they come: a device, a pipe, or an open file such as /dev/stdout."""
    # The device /dev/null, say, or a named pipe: neither a file nor a folder.
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return special or descriptor(path) is not None


def open_stream(path: Path) -> BinaryIO:
    """Open a device or a pipe for writing; or go on writing to an open file, where its last byte was written."""
    number = descriptor(path)
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


def descriptor(path: Path) -> int | None:
    """Return the number of an open file of this process by its name, such as 1 of /dev/stdout; None for other names."""
    name = os.path.join(path.parent, os.readlink(path)) if path.is_symlink() else str(path)
    folder, number = os.path.split(name)
    is_open = number.isdecimal() and os.path.realpath(folder) == os.path.realpath(OPEN_FILES)
    return int(number) if is_open else None


@contextmanager
def atomic_folder(folder: Path, storage: Storage = DISK) -> Iterator[FolderWriter]:
    """Write a folder atomically; an existing folder of that name is replaced, parent folders are made.

    Files may also be written to `FolderWriter.path` by other means. After an error new files are removed as far as
    possible, and an earlier folder is still there.
    """
    if folder.exists() and folder.samefile("."):
        raise InputError(f"{folder}: is the current folder, which cannot be replaced as a whole; name a folder in it")
    # Under the temporary name nobody takes a half folder for a whole one.
    writer = folder_writer(folder, storage)
    with _removed_after_error(storage, writer.path):
        make_folders(storage, writer.path)
        yield writer
        publish(folder, storage)


def folder_writer(folder: Path, storage: Storage) -> FolderWriter:
    """Create the writer of a folder under its temporary name, which all processes that write it know."""
    return FolderWriter(folder.with_name(TEMPORARY + folder.name), storage)


def publish(folder: Path, storage: Storage) -> None:
    """Flush a folder that has its temporary name yet, and give it its name, in place of an existing folder."""
    temporary, outgoing = folder.with_name(TEMPORARY + folder.name), folder.with_name(OUTGOING + folder.name)
    for path in (*sorted(temporary.rglob("*")), temporary):
        storage.flush(path)
    # No rename replaces a folder that holds files, so an earlier one steps aside first.
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


def write_folder(folder: Path, files: Mapping[str, Content], facts: Mapping[str, Any], storage: Storage) -> None:
    with atomic_folder(folder, storage) as writer:
        for name, content in files.items():
            writer.write(name, content)
        writer.seal(facts)


@contextmanager
def named_write_errors(path: Path, remedy: str = "make room for it or choose another name") -> Iterator[None]:
    """Turn an OSError of writing into a RunError that names the file or folder, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error}); {remedy}") from error


def discard(storage: Storage, folder: Path) -> None:
    """Remove a folder; it is renamed first, so that nobody finds it half empty."""
    outgoing = folder.with_name(OUTGOING + folder.name)
    remove(storage, outgoing)
    storage.rename(folder, outgoing)
    storage.flush(folder.parent)
    remove(storage, outgoing)


def sweep(storage: Storage, folder: Path) -> None:
    """Remove temporary files that interrupted writers left in a folder."""
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
    remove(storage, temporary)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            remove(storage, temporary)
        raise
