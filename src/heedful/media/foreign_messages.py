"""Suppression of the messages that C libraries, such as libmpg123 and libtiff, print while they read a damaged file.

They print to glibc's variable `stderr`, which is changed while a file is read. File descriptor 2 does not change, so
nothing that Python and other processes write to it is lost. In other C runtimes, `stderr` is a constant, and messages
are not suppressed.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _ErrorStream:
    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._variable: ctypes.c_void_p | None = None
        if platform.libc_ver()[0] == "glibc":
            library = ctypes.CDLL(None)
            library.fopen.restype = ctypes.c_void_p
            self._variable = ctypes.c_void_p.in_dll(library, "stderr")
            self._null_stream = library.fopen(os.devnull.encode(), b"w")
            self._original = self._variable.value

    def change(self, readers: int) -> None:
        """Add `readers` to the number of readers: the first one changes the variable, and the last one restores it."""
        if self._variable is None or not self._null_stream:
            return
        # All threads share the variable: the first reader to finish must not restore it for the others.
        with self._lock:
            self._readers += readers
            self._variable.value = self._null_stream if self._readers else self._original


_STREAM = _ErrorStream()


@contextmanager
def without_foreign_messages() -> Iterator[None]:
    """Hide what C libraries print to standard error in this block; exceptions report the damage."""
    _STREAM.change(1)
    try:
        yield
    finally:
        _STREAM.change(-1)
