"""State of one text during generation: its tokens, why it ended, and the decoded text as a stream."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from heedful.config.schema import GenerateConfig
from heedful.text.tokenizer import EOS


class TextStream:
    """Incremental text of a generated output: bytes in, whole characters out, cut at the first stop string.

    The text is scanned character by character, and ends before the stop string that is completed first; if several are
    completed by the same character, before the longest. How the text is split into tokens does not matter. The `prefix`
    that the tokenizer adds, a space or nothing, is removed.

    Attributes:
        parts: The text that later bytes cannot change, in nonempty pieces, one for each call that made more text final.
        stopped: True once a stop string has been reached; bytes fed afterwards are ignored.
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
        """Text of the output so far that later bytes cannot change."""
        return "".join(self.parts)

    def feed(self, token_bytes: bytes, final: bool = False) -> None:
        """Append the bytes of a token to the text; with `final`, an incomplete character at the end becomes U+FFFD."""
        if self.stopped:
            return
        # Only the first bytes of an output can begin with the prefix.
        if token_bytes:
            token_bytes, self._prefix = token_bytes.removeprefix(self._prefix), b""
        text = self._pending + self._decoder.decode(token_bytes, final)

        # Take the stop string that ends first; among several that end at the same character, the longest.
        begins = ((text.find(string), len(string)) for string in self._stop)
        stops = [(begin + length, begin) for begin, length in begins if begin >= 0]
        self.stopped = bool(stops)
        end = min(stops)[1] if stops else len(text)
        if not (stops or final):  # hold back the longest suffix of the text that may begin a stop string
            sizes = range(min(max(map(len, self._stop), default=0), len(text)), 0, -1)
            begins_stop = (size for size in sizes if any(string.startswith(text[-size:]) for string in self._stop))
            end -= next(begins_stop, 0)
        self._pending = text[end:]
        if end:
            self.parts.append(text[:end])


Reason = Literal["eos", "stop", "length"]


@dataclass
class GenerationRow:
    """Row of a batch in text generation: a prompt and the output so far. A row may move from batch to batch.

    Attributes:
        config: The sampling settings.
        prompt: The tokens of the prompt.
        output: The tokens generated so far, without <eos>.
        scores: Log P of each generated token, <eos> included.
        text: The output as text.
        done: True once the output has ended.
        reason: Why the output ended: at <eos>, at a stop string, or at the maximum length.
        window: The tokens from which the next one is predicted. In training, a document follows the <eos> of another
            document, so the window of an empty prompt begins with <eos>. Penalties do not apply to this <eos>.
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
    def remaining(self) -> int:
        """Number of tokens that the row may still generate before `max_tokens`."""
        return self.config.max_tokens - len(self.output)

    def take(self, token: int, token_bytes: bytes) -> None:
        """Append a generated token, unless it is <eos>, and its text; update `done` and `reason`."""
        is_eos = token == EOS
        if not is_eos:
            self.output.append(token)
            self.window.append(token)
        self.text.feed(token_bytes, final=is_eos or not self.remaining)
        self.done = is_eos or self.text.stopped or not self.remaining
        self.reason = "stop" if self.text.stopped else "eos" if is_eos else "length"

    def crop(self, context: int | None) -> None:
        """Cut a window that is longer than `context` to its last `context` // 2 tokens, but at least one."""
        if context is not None and len(self.window) > context:
            # The model has to read a cut window again; cut to half, this happens only every `context` / 2 tokens.
            del self.window[: -max(1, context // 2)]
