"""Storage layer for saving: every change to the disk goes through one object, so that tests can let each one fail."""

import os
from io import FileIO
from pathlib import Path


class Storage:
    """Operations on a local file system. All methods raise OSError."""

    def make_folder(self, folder: Path) -> None:
        """Make one folder; its parent folder must exist."""
        folder.mkdir()

    def create(self, path: Path) -> FileIO:
        """Open a new file for writing, unbuffered, so that each write raises its own errors."""
        return FileIO(path, "xb")

    def write(self, file: FileIO, data: bytes | memoryview) -> None:
        """Write all bytes of a buffer to a file."""
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]

    def flush(self, file: FileIO) -> None:
        """Flush a file: return when its bytes are on the disk."""
        os.fsync(file.fileno())

    def flush_folder(self, folder: Path) -> None:
        """Flush a folder: return when its entries are on the disk."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file over another, or a folder to a free name, in one atomic step."""
        os.rename(old, new)

    def remove_file(self, path: Path) -> None:
        """Remove one file."""
        path.unlink()

    def remove_folder(self, folder: Path) -> None:
        """Remove one empty folder."""
        folder.rmdir()

    def list(self, folder: Path) -> list[Path]:
        """List the paths in a folder, in order of their names."""
        return sorted(folder.iterdir())


DISK = Storage()
