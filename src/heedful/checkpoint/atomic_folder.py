"""Atomic writing of folders: filled under a hidden name, then published by one rename."""

import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.checkpoint.manifest import MANIFEST, Entry, manifest_text
from heedful.checkpoint.storage import Storage

INCOMING = ".tmp-"  # prefix of a folder or file that is not published yet
OUTGOING = ".old-"  # prefix of a folder that is about to be removed

Content = Iterable[bytes | memoryview]


def publish(storage: Storage, folder: Path, files: Mapping[str, Content], facts: Mapping[str, Any]) -> None:
    """Write a folder and its manifest atomically; an existing folder of the same name is replaced.

    Args:
        storage: Where to write.
        folder: The name to publish under.
        files: The bytes of each file, by its name relative to the folder.
        facts: JSON values for the manifest.

    Raises:
        OSError: Writing failed. An earlier folder is still there, and new files are removed as far as possible.
    """
    incoming = folder.with_name(INCOMING + folder.name)
    try:
        remove(storage, incoming)
        _fill(storage, incoming, files, facts)
        _move_in(storage, incoming, folder)
    except OSError:
        with suppress(OSError):
            remove(storage, incoming)
        raise


def replace_file(storage: Storage, path: Path, content: Content) -> None:
    """Write one file atomically: readers see its old bytes or its new ones.

    Raises:
        OSError: Writing failed.
    """
    incoming = path.with_name(INCOMING + path.name)
    remove(storage, incoming)
    _write(storage, incoming, content)
    storage.rename(incoming, path)
    storage.flush_folder(path.parent)


def discard(storage: Storage, folder: Path) -> None:
    """Remove a folder; it is renamed first, so that nobody finds it half empty.

    Raises:
        OSError: Removing failed.
    """
    outgoing = folder.with_name(OUTGOING + folder.name)
    remove(storage, outgoing)
    storage.rename(folder, outgoing)
    storage.flush_folder(folder.parent)
    remove(storage, outgoing)


def sweep(storage: Storage, folder: Path) -> None:
    """Remove temporary files that interrupted writers left in a folder.

    Raises:
        OSError: Removing failed.
    """
    for path in storage.list(folder):
        if path.name.startswith((INCOMING, OUTGOING)):
            remove(storage, path)


def remove(storage: Storage, path: Path) -> None:
    """Remove a file or a folder with all its content, if it exists.

    Raises:
        OSError: Removing failed.
    """
    if path.is_dir() and not path.is_symlink():
        for child in storage.list(path):
            remove(storage, child)
        storage.remove_folder(path)
    elif os.path.lexists(path):
        storage.remove_file(path)


def make_folders(storage: Storage, folder: Path) -> None:
    """Make a folder and its parent folders where they are missing.

    Raises:
        OSError: Making a folder failed.
    """
    if not folder.is_dir():
        make_folders(storage, folder.parent)
        storage.make_folder(folder)
        storage.flush_folder(folder.parent)


def _fill(storage: Storage, folder: Path, files: Mapping[str, Content], facts: Mapping[str, Any]) -> None:
    make_folders(storage, folder)
    entries = {}
    for name, content in files.items():
        make_folders(storage, (folder / name).parent)
        entries[name] = _write(storage, folder / name, content)
    _write(storage, folder / MANIFEST, [manifest_text(entries, facts)])
    for parent in sorted({folder, *((folder / name).parent for name in files)}):
        storage.flush_folder(parent)


def _write(storage: Storage, path: Path, content: Content) -> Entry:
    size, checksum = 0, 0
    with storage.create(path) as file:
        for chunk in content:
            storage.write(file, chunk)
            size, checksum = size + len(chunk), zlib.crc32(chunk, checksum)
        storage.flush(file)
    return Entry(size, f"{checksum:08x}")


def _move_in(storage: Storage, incoming: Path, folder: Path) -> None:
    outgoing = folder.with_name(OUTGOING + folder.name)
    replaces = folder.exists()
    if replaces:
        remove(storage, outgoing)
        storage.rename(folder, outgoing)
    try:
        storage.rename(incoming, folder)
    except OSError:
        if replaces:
            storage.rename(outgoing, folder)
        raise
    storage.flush_folder(folder.parent)
    remove(storage, outgoing)
