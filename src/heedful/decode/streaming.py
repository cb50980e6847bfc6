"""Bytes to text, given out as soon as it is certain: whole characters only, and no beginning of a stop string."""

import codecs
from collections.abc import Sequence


class TextStream:
    """The text of an output that is still being spelled.

    It ends with the first stop string that is complete, reading character by character; where two are complete at the
    same character, before the longer one. How the text is cut into tokens does not matter.

    Args:
        stop: texts that end the output and are not part of it.
        prefix: what is taken off the front, because a tokenizer puts it there: a space or nothing.

    Attributes:
        parts: the text that is certain, as it became so; none is empty.
        stopped: a stop string was reached. What is fed afterwards is not looked at.
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
        """All that is certain."""
        return "".join(self.parts)

    def feed(self, spelled: bytes, final: bool = False) -> None:
        """Add the bytes of a token; after the last one everything is certain, and half a character becomes U+FFFD."""
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
    """Where the stop string begins that is complete first, the longest of those that end there; None: there is none."""
    found = ((text.find(string), len(string)) for string in stop)
    ends = [(begin + length, begin) for begin, length in found if begin >= 0]
    return min(ends)[1] if ends else None


def unfinished_stop(text: str, stop: Sequence[str]) -> int:
    """How many characters at the end of the text may turn out to begin a stop string."""
    longest = max(map(len, stop), default=0)
    sizes = range(min(longest, len(text)), 0, -1)
    return next((size for size in sizes if any(string.startswith(text[-size:]) for string in stop)), 0)
