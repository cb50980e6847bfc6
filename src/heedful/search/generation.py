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
    are complete at the same character, before the longer one. The cut of the text into tokens does not matter. A
    `prefix` that the tokenizer adds, a space or nothing, is left out.

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
        self._pending = ""  # whole characters that may begin a stop string

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
        text = self._pending + self._decoder.decode(spelled, final)

        # of the stop strings that are complete the first, and of several that end there the longest
        begins = ((text.find(string), len(string)) for string in self._stop)
        stops = [(begin + length, begin) for begin, length in begins if begin >= 0]
        self.stopped = bool(stops)
        end = min(stops)[1] if stops else len(text) - (0 if final else self._unfinished_stop(text))
        self._pending = text[end:]
        if end:
            self.parts.append(text[:end])

    def _unfinished_stop(self, text: str) -> int:
        """Number of characters at the end of a text that may turn out to begin a stop string."""
        longest = max(map(len, self._stop), default=0)
        sizes = range(min(longest, len(text)), 0, -1)
        return next((size for size in sizes if any(string.startswith(text[-size:]) for string in self._stop)), 0)


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
