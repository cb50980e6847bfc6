"""State of one text under generation: its tokens, whether it is done, and its text as a stream."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from heedful.config.schema import GenerateConfig
from heedful.text.tokenizer import EOS


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


Reason = Literal["eos", "stop", "length"]


@dataclass
class GenerationRow:
    """One row of a batch in text generation: a prompt with the output so far; a row may move from batch to batch.

    Attributes:
        config: the settings by which its tokens are chosen.
        prompt: the tokens of the prompt.
        output: the tokens generated so far, without <eos>.
        scores: log P of each generated token and of <eos>.
        text: the output as text.
        done: True once the output has ended.
        reason: the reason why the output ended.
        window: tokens that the model has to have read before the next one. In training a document follows the <eos> of
            another document, so <eos> stands before an empty prompt; it is no part of the prompt and never penalised.
    """

    config: GenerateConfig
    prompt: list[int]
    text: TextStream = field(default_factory=TextStream)
    output: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    done: bool = False
    reason: Reason = "length"
    window: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.window = [*self.prompt] or [EOS]

    @property
    def seen(self) -> list[int]:
        """The tokens of the prompt and of the output so far."""
        return self.prompt + self.output

    @property
    def left(self) -> int:
        """Number of tokens that the row may still generate before `max_tokens`."""
        return self.config.max_tokens - len(self.output)

    def take(self, token: int, score: float, spelled: bytes) -> None:
        """Append a generated token with its log-probability `score`, and update whether the output has ended."""
        ended = token == EOS
        self.scores.append(score)
        if not ended:
            self.output.append(token)
            self.window.append(token)
        self.text.feed(spelled, final=ended or not self.left)
        self.done = ended or self.text.stopped or not self.left
        self.reason = "stop" if self.text.stopped else "eos" if ended else "length"

    def crop(self, context: int | None) -> None:
        """Cut a window longer than `context`, in place, to its last `context` // 2 tokens, at least one."""
        if context is not None and len(self.window) > context:
            del self.window[: -max(1, context // 2)]
