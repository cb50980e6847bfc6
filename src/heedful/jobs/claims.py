"""Claims: who computes what, so that no two workers do the same, and nothing waits long for a worker that died.

A claim is a file beside the parts, which its holder locks, and touches every few seconds. On the holder's machine the
lock tells at once whether the holder lives. To other machines, whose file system may have no locks or only local ones,
a claim is free that was not touched for a while; clocks are not compared. Where all this fails, two workers compute the
same, and the result is still right.
"""

import os
import platform
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil
from filelock import lock_descriptor

LEASE = 60.0  # seconds after which a claim is free that nobody has touched
BEATS = 6  # touches of a claim in that time


class Claims:
    """Claims of one process.

    Args:
        lease: Seconds after which the claim of another process is free if it was not touched.
    """

    def __init__(self, lease: float = LEASE) -> None:
        self._lease = lease
        self._machine = this_machine()
        self._touched: dict[
            Path, tuple[int, float]
        ] = {}  # the last touch of others' claims, and since when it is known

    @contextmanager
    def claim(self, path: Path) -> Iterator[bool]:
        """Hold a claim within the block if it is free.

        Args:
            path: The file that stands for the claim.

        Yields:
            True; or False if another worker holds the claim, or its folder is gone.

        Raises:
            OSError: The file cannot be made.
        """
        file = self._take(path)
        if file is None:
            yield False
            return
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(path, ended), daemon=True)
        beat.start()
        try:
            yield True
        finally:
            ended.set()
            beat.join()
            with suppress(OSError):
                path.unlink()
            file.close()
            if sys.platform == "win32":  # where an open file cannot be removed
                with suppress(OSError):
                    path.unlink()

    def _take(self, path: Path) -> BinaryIO | None:
        try:
            file = path.open("x+b")
        except FileExistsError:
            return self._take_over(path)
        except FileNotFoundError:
            return None
        _lock(file, wait=True)  # for a moment another worker may look at the new file
        return self._signed(file)

    def _take_over(self, path: Path) -> BinaryIO | None:
        try:
            file = path.open("r+b")
        except FileNotFoundError:
            return None  # just given back
        locked = _lock(file, wait=False)
        if (locked and file.read() == self._machine) or self._expired(path, file):
            return self._signed(file)
        file.close()
        return None

    def _signed(self, file: BinaryIO) -> BinaryIO:
        file.seek(0)
        file.truncate()
        file.write(self._machine)
        file.flush()
        return file

    def _expired(self, path: Path, file: BinaryIO) -> bool:
        touch, now = os.fstat(file.fileno()).st_mtime_ns, time.monotonic()
        known, since = self._touched.get(path, (None, now))
        if touch != known:
            self._touched[path] = touch, now
            return False
        return now - since > self._lease

    def _beat(self, path: Path, ended: threading.Event) -> None:
        while not ended.wait(self._lease / BEATS):
            with suppress(OSError):
                os.utime(path)


def this_machine() -> bytes:
    """Identify the running system, within which file locks can be trusted; after a restart of a machine it differs."""
    return f"{platform.node()} since {psutil.boot_time():.0f}".encode()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Lock an open file; False if another one has locked it, or the file system or the platform has no locks."""
    try:
        return lock_descriptor(file.fileno(), blocking=wait)
    except OSError:
        return False
