"""Standard output and standard error for messages: a reader that closes the pipe does not end the command."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO


class Messages(TextIOWrapper):
    """Standard stream whose writes raise no OSError: the first one is stored, and later text is discarded.

    Results, unlike messages, are written to `buffer`, which raises errors as usual.

    Attributes:
        failure: The first failure, such as a BrokenPipeError after `| head -1`; None if everything was written.
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
        # The null device takes the rest of the buffer and all later text, so that no further write fails.
        with suppress(OSError):  # a stream that is not a file has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


@contextmanager
def standard_streams() -> Iterator[Messages]:
    """Replace both standard streams with `Messages` within the block, and yield standard output.

    A closed stream (`>&-`) fails like a full disk once something is written to it.
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
            # Detached, because a wrapper closes its stream when it is deleted.
            stream.detach()


def _messages(stream: TextIO | None) -> Messages:
    if stream is None:  # a descriptor that fails on writing, like a closed one
        return Messages(os.fdopen(os.open(os.devnull, os.O_RDONLY), "wb"), encoding="utf-8")
    stream.flush()
    return Messages(
        stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=bool(stream.line_buffering)
    )
