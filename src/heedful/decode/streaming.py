"""Streaming of generated text: decodes bytes to text as soon as it is final, and stops at stop strings."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Incremental text of a generated output: bytes in, whole characters out, cut at the first stop string.

    The text ends with the first stop string that is complete, reading character by character; where two stop strings
    are complete at the same character, before the longer one. The cut of the text into tokens does not matter.

    Args:
        stop: strings that end the output and are not part of it.
        prefix: a prefix removed from the text, because the tokenizer adds it: a space or nothing.

    Attributes:
        parts: the final text in the pieces in which it became final; no piece is empty.
        stopped: True once a stop string was reached; bytes fed afterwards are ignored.
    """

    def __init__(self, stop: Sequence[str] = (), prefix: str = "") -> None:
        self.parts: list[str] = []
        self.stopped = False
        self._stop = stop
        self._prefix = prefix.encode()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""  # whole characters that may begin a stop string

    @property
    def text(self) -> str:
        """The text of the output so far that is final: no later byte changes it."""
        return "".join(self.parts)

    def feed(self, spelled: bytes, final: bool = False) -> None:
        """Append the bytes of a token to the text; with `final`, an incomplete character at the end becomes U+FFFD."""
        if self.stopped:
            return
        if spelled:
            spelled, self._prefix = spelled.removeprefix(self._prefix), b""
        text = self._held + self._decoder.decode(spelled, final)
        end = first_stop(text, self._stop)
        self.stopped = end is not None
        if end is None:
            end = len(text) - (0 if final else unfinished_stop(text, self._stop))
        self._held = text[end:]
        if end:
            self.parts.append(text[:end])


def first_stop(text: str, stop: Sequence[str]) -> int | None:
    """Index where the stop string that is complete first begins (the longest of several ending there), or None."""
    found = ((text.find(string), len(string)) for string in stop)
    ends = [(begin + length, begin) for begin, length in found if begin >= 0]
    return min(ends)[1] if ends else None


def unfinished_stop(text: str, stop: Sequence[str]) -> int:
    """Number of characters at the end of a text that may turn out to begin a stop string."""
    longest = max(map(len, stop), default=0)
    sizes = range(min(longest, len(text)), 0, -1)
    return next((size for size in sizes if any(string.startswith(text[-size:]) for string in stop)), 0)
