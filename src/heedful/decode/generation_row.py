"""A request under way: what it has said, what the model has read of it, and whether it is done."""

from dataclasses import dataclass, field
from typing import Literal

from heedful.config.schema import GenerateConfig
from heedful.decode.streaming import TextStream
from heedful.text.tokenizer import EOS

Reason = Literal["eos", "stop", "length"]


@dataclass
class GenerationRow:
    """One row of a batch; it may move from batch to batch.

    Attributes:
        config: how its tokens are chosen.
        prompt: the tokens of the prompt.
        output: the tokens said, without <eos>.
        scores: log P of each token said and of <eos>.
        text: what the output spells.
        done: it has ended.
        reason: why.
        window: what the model has to have read before the next token. A document in training stands behind the <eos>
            of another, so that is what stands before an empty prompt; it is no part of the prompt and never penalised.
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
        """The tokens of prompt and output."""
        return self.prompt + self.output

    @property
    def left(self) -> int:
        """How many tokens it may still say."""
        return self.config.max_tokens - len(self.output)

    def take(self, token: int, score: float, spelled: bytes) -> None:
        """Add a token of log-probability `score`, and see whether it ends the output."""
        ended = token == EOS
        self.scores.append(score)
        if not ended:
            self.output.append(token)
            self.window.append(token)
        self.text.feed(spelled, final=ended or not self.left)
        self.done = ended or self.text.stopped or not self.left
        self.reason = "stop" if self.text.stopped else "eos" if ended else "length"

    def crop(self, context: int | None) -> None:
        """Of a window that does not fit keep the last `context` // 2 tokens, and at least one."""
        if context is not None and len(self.window) > context:
            del self.window[: -max(1, context // 2)]
