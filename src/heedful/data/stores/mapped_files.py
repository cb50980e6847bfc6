"""Files that stay open while a training reads them through memory maps, and are watched for changes.

A memory map shows whatever another process writes into the file, and ends the process with SIGBUS where the file has
become shorter. So the state of each file is compared before and after it is read.
"""

import os
import weakref
import zlib
from pathlib import Path

import numpy as np

from heedful.errors import RunError
from heedful.storage.manifest import BLOCK, Entry

REMEDY = "the same command prepares the data again, and goes on from the last checkpoint"


class MappedFile:
    """Open file of a data folder whose bytes must stay those of its manifest.

    Args:
        path: The file, verified against its entry.
        entry: Its entry in the manifest.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path, entry: Entry) -> None:
        self.path = path
        self.entry = entry
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._found()

    def array(self, dtype: str | None = None) -> np.ndarray:
        """Map the array of the file into memory: an .npy file, or a flat row of a given type.

        Raises:
            ValueError: The file holds no array.
        """
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            if dtype is not None:
                return np.memmap(file, dtype=dtype, mode="r")
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
            if kind.hasobject:
                raise ValueError("an array of objects")
            return np.memmap(file, dtype=kind, mode="r", offset=file.tell(), shape=shape)

    def check(self) -> None:
        """Check that the file has not changed since it was opened; it is read again only if its dates differ.

        Raises:
            RunError: It has another size or other bytes, or cannot be read any more.
        """
        try:
            found = self._found()
            if found == self._state:
                return
            changed = found[0] != self.entry.bytes or self._checksum() != self.entry.crc32
        except OSError as error:
            raise RunError(f"{self.path} cannot be read any more ({error.strerror}): {REMEDY}") from error
        if changed:
            raise RunError(f"{self.path} was changed while training reads it: {REMEDY}")
        self._state = found

    def _found(self) -> tuple[int, int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _checksum(self) -> str:
        content, checksum = self.array("u1"), 0
        for begin in range(0, len(content), BLOCK):
            checksum = zlib.crc32(content[begin : begin + BLOCK].data, checksum)
        return f"{checksum:08x}"
