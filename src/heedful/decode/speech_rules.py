"""Rules for the tokens of a transcript, as a decoding state around another one, so that every search keeps to them.

Radford et al. (2022, section 4.5). R rows, T tokens written so far, V vocabulary.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config.modalities import TranscribeConfig
from heedful.models.model import DecodingState
from heedful.text.speech_tokens import STEP, SpeechTokens
from heedful.text.tokenizer import BOS, EOS, PAD

FIRST_SECONDS = 1.0  # the latest beginning of the first segment of a window


@dataclass(frozen=True)
class SpeechRules:
    """Rules for the tokens of a transcript: which may come next, given those that were written.

    Attributes:
        never: True for tokens that are never written.
        never_first: True for tokens that are not written first.
        times: the ids of the time stamps; empty if none are written.
    """

    never: Bool[Tensor, " V"]
    never_first: Bool[Tensor, " V"]
    times: range

    @classmethod
    def of(cls, tokens: SpeechTokens, config: TranscribeConfig, times: range, vocabulary: int) -> "SpeechRules":
        """Make the rules of a model: those that its settings name, and no token of a prompt.

        Args:
            tokens: the tokens of speech in the vocabulary.
            config: the settings of the transcription.
            times: the time stamps that are written; empty: none are.
            vocabulary: the number of tokens, V.
        """
        never, first = (torch.zeros(vocabulary, dtype=torch.bool) for _ in range(2))
        never[sorted({PAD, BOS, *config.suppress, *(tokens.controls - set(times))} - {EOS})] = True
        first[list(config.suppress_first)] = True
        return cls(never, never | first, times)

    def to(self, device: torch.device) -> "SpeechRules":
        """Copy the rules to a device."""
        return SpeechRules(self.never.to(device), self.never_first.to(device), self.times)

    def apply(self, logits: Float[Tensor, "R V"], written: Int[Tensor, "R T"]) -> Float[Tensor, "R V"]:
        """Set the logits of tokens that may not come next to minus infinity."""
        logits = logits.masked_fill(self.never if written.size(1) else self.never_first, -torch.inf)
        if not self.times:
            return logits
        logits = logits.masked_fill(self.forbidden(written, logits.size(1)), -torch.inf)
        return logits.masked_fill(self.overruled(logits), -torch.inf)

    def forbidden(self, written: Int[Tensor, "R T"], vocabulary: int) -> Bool[Tensor, "R V"]:
        """True for tokens that would break the order of time stamps.

        The first token is a time stamp, of at most a second. Time stamps come in pairs, the end of a segment and the
        beginning of the next, and only the last one may be alone. They never decrease, and a segment has a length.
        """
        begin, end = self.times.start, self.times.stop
        ids = torch.arange(vocabulary, device=written.device)
        is_time = (ids >= begin) & (ids < end)
        if not written.size(1):
            latest = begin + round(FIRST_SECONDS / STEP)
            return (~is_time | (ids > latest)).expand(len(written), -1)
        stamped = (written >= begin) & (written < end)
        last = stamped[:, -1:]
        closing = last & ~stamped[:, -2:-1] if written.size(1) > 1 else torch.zeros_like(last)
        opening = last & ~closing
        reached = written.masked_fill(~stamped, begin - 1).amax(1, keepdim=True)
        early = is_time & (ids < reached + (~closing).long())
        return early | (opening & is_time) | (closing & ~is_time & (ids != EOS))

    def overruled(self, logits: Float[Tensor, "R V"]) -> Bool[Tensor, "R V"]:
        """True for all but time stamps in rows where these together are likelier than any other token."""
        begin, end = self.times.start, self.times.stop
        times = logits[:, begin:end].float().logsumexp(1)
        others = torch.cat([logits[:, :begin], logits[:, end:]], dim=1).float().amax(1)
        mask = (times > others)[:, None].repeat(1, logits.size(1))
        mask[:, begin:end] = False
        return mask


class SpeechState:
    """Decoding state that is fed a prompt before a search begins, and lets through what the rules of speech allow.

    Attributes:
        begin: the token that is fed next to each row; a search feeds the last of the prompt.
        heard: the logits after <bos>, one row for each recording; None before it was fed.
    """

    def __init__(self, state: DecodingState, rules: SpeechRules) -> None:
        self.state = state
        self.rules = rules
        self.begin = state.begin
        self.heard: Float[Tensor, "R V"] | None = None
        self.written: Int[Tensor, "R T"] | None = None  # None before the search has begun

    def prompt(self) -> Float[Tensor, "R V"]:
        """Feed the next token of the prompt, `begin`, of which the caller sets another; return the logits after it."""
        return self._fed(self.begin)

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token to each row, and return the logits of the next, minus infinity for those not allowed."""
        fed = tokens[:, None]
        self.written = fed[:, :0] if self.written is None else torch.cat([self.written, fed], dim=1)
        return self.rules.apply(self._fed(tokens), self.written)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the decoding state."""
        self.state.select(rows)
        if self.written is not None:
            self.written = self.written[rows]

    def _fed(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        logits = self.state.step(tokens)
        if self.heard is None:
            self.heard = logits
        return logits
