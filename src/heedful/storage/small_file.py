"""Reader of small files that may come from strangers: a pipe, a device and a file that is too large are refused."""

import errno
import stat
from pathlib import Path

MOST = 1 << 22  # bytes of a manifest, a recipe or other settings


def read_small(path: Path, most: int = MOST) -> bytes:
    """Read a whole file, if it is one and holds at most so many bytes.

    Raises:
        OSError: The file cannot be read, is a pipe or a device, or is larger than `most`.
    """
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, and should have {most:,} at most", str(path))
    return path.read_bytes()
