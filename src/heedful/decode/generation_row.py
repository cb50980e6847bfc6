"""State of one text under generation: its prompt and output tokens, what the model still has to read, if it is done."""

from dataclasses import dataclass, field
from typing import Literal

from heedful.config.schema import GenerateConfig
from heedful.decode.streaming import TextStream
from heedful.text.tokenizer import EOS

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
