"""Messages that libraries in C, such as libmpg123 and libtiff, print while they read a damaged file: left out."""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _ErrorStream:
    """The variable `stderr` of glibc, which libraries in C print to; it is changed while somebody reads a file.

    File descriptor 2 stays as it is, so that nothing is lost of what Python, its other threads and other processes
    write there. Other C libraries have a constant in place of the variable; there nothing is changed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._variable: ctypes.c_void_p | None = None
        if platform.libc_ver()[0] == "glibc":
            library = ctypes.CDLL(None)
            library.fopen.restype = ctypes.c_void_p
            self._variable = ctypes.c_void_p.in_dll(library, "stderr")
            self._nowhere = library.fopen(os.devnull.encode(), b"w")
            self._before = self._variable.value

    def change(self, readers: int) -> None:
        """Count one reader more or less; the variable is changed by the first, and put back by the last."""
        if self._variable is None or not self._nowhere:
            return
        with self._lock:
            self._readers += readers
            self._variable.value = self._nowhere if self._readers else self._before


_STREAM = _ErrorStream()


@contextmanager
def without_foreign_messages() -> Iterator[None]:
    """Leave out what libraries in C print to standard error meanwhile; damage is reported by exceptions."""
    _STREAM.change(1)
    try:
        yield
    finally:
        _STREAM.change(-1)
