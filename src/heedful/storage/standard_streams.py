"""Standard output and standard error for messages: what a command writes does not depend on who reads them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO


class Messages(TextIOWrapper):
    """A standard stream on which a failing write ends nothing: the first failure is noted, later text is discarded.

    Whoever writes results rather than messages writes to `buffer`, where a failure is raised as usual.

    Attributes:
        failure: The first failure, such as a BrokenPipeError after `| head -1`; None: everything was written.
    """

    failure: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._discard(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        self.failure = self.failure or error
        with suppress(OSError):  # a stream that is not a file has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


@contextmanager
def standard_streams() -> Iterator[Messages]:
    """Let no message end the command: within the block both standard streams are `Messages`; gives standard output.

    A stream that is closed (`>&-`) fails like a full disk does, once something is written to it.
    """
    before = sys.stdout, sys.stderr
    output, errors = map(_messages, before)
    sys.stdout, sys.stderr = output, errors
    try:
        yield output
    finally:
        sys.stdout, sys.stderr = before
        for stream in (output, errors):
            stream.flush()
            stream.detach()


def _messages(stream: TextIO | None) -> Messages:
    if stream is None:  # a descriptor that is not for writing, as the closed one was
        return Messages(os.fdopen(os.open(os.devnull, os.O_RDONLY), "wb"), encoding="utf-8")
    stream.flush()
    return Messages(
        stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=bool(stream.line_buffering)
    )
