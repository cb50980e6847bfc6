"""Every change that saving makes to a disk goes through one small object, so that tests can let each of them fail."""

import os
from io import FileIO
from pathlib import Path


class Storage:
    """A local file system. All methods raise OSError."""

    def make_folder(self, folder: Path) -> None:
        """Make one folder, whose parent exists."""
        folder.mkdir()

    def create(self, path: Path) -> FileIO:
        """Open a file that is not there yet for writing, unbuffered, so that each write meets its own errors."""
        return FileIO(path, "xb")

    def write(self, file: FileIO, data: bytes | memoryview) -> None:
        """Write all bytes."""
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]

    def flush(self, file: FileIO) -> None:
        """Return when the file's bytes are on the disk."""
        os.fsync(file.fileno())

    def flush_folder(self, folder: Path) -> None:
        """Return when the folder's entries are on the disk."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Move a file over another, or a folder to a free name, in one step: all see the one or the other."""
        os.rename(old, new)

    def remove_file(self, path: Path) -> None:
        """Remove one file."""
        path.unlink()

    def remove_folder(self, folder: Path) -> None:
        """Remove one empty folder."""
        folder.rmdir()

    def list(self, folder: Path) -> list[Path]:
        """The paths in a folder, in order of their names."""
        return sorted(folder.iterdir())


DISK = Storage()
