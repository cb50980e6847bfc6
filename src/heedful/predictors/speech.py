"""Transcription of long audio: windows, and the rules for the tokens of a transcript, as a decoding state."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures.model import DecodingState
from heedful.config.modalities import TranscribeConfig
from heedful.media.audio import Samples
from heedful.media.recordings import Recording
from heedful.predictors.transcript import Segment, Transcript
from heedful.predictors.word_times import Word
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
        """Create the rules of a model with V tokens: those that its settings name, and no token of a prompt."""
        never, first = (torch.zeros(vocabulary, dtype=torch.bool) for _ in range(2))
        never[sorted({PAD, BOS, *config.suppress, *(tokens.controls - set(times))} - {EOS})] = True
        first[list(config.suppress_first)] = True
        return cls(never, never | first, times)

    def to(self, device: torch.device) -> "SpeechRules":
        return SpeechRules(self.never.to(device), self.never_first.to(device), self.times)

    def apply(self, logits: Float[Tensor, "R V"], written: Int[Tensor, "R T"]) -> Float[Tensor, "R V"]:
        """Set the logits of tokens that may not come next to minus infinity."""
        logits = logits.masked_fill(self.never if written.size(1) else self.never_first, -torch.inf)
        if not self.times:
            return logits
        logits = logits.masked_fill(self.forbidden(written, logits.size(1)), -torch.inf)

        # Where all time stamps together are likelier than any other token, only they remain.
        begin, end = self.times.start, self.times.stop
        times = logits[:, begin:end].float().logsumexp(1)
        others = torch.cat([logits[:, :begin], logits[:, end:]], dim=1).float().amax(1)
        overruled = (times > others)[:, None].repeat(1, logits.size(1))
        overruled[:, begin:end] = False
        return logits.masked_fill(overruled, -torch.inf)

    def forbidden(self, written: Int[Tensor, "R T"], vocabulary: int) -> Bool[Tensor, "R V"]:
        """True for tokens that would break the order of time stamps.

        The first token is a time stamp, of at most a second. Time stamps come in pairs, the end of a segment and the
        beginning of the next, and only the last one may be alone. They never decrease, and a segment has a length.
        """
        begin, end = self.times.start, self.times.stop
        ids = torch.arange(vocabulary, device=written.device)
        is_time = (ids >= begin) & (ids < end)
        if not written.size(1):
            limit = begin + round(FIRST_SECONDS / STEP)
            return (~is_time | (ids > limit)).expand(len(written), -1)
        stamped = (written >= begin) & (written < end)
        last = stamped[:, -1:]
        closing = last & ~stamped[:, -2:-1] if written.size(1) > 1 else torch.zeros_like(last)
        opening = last & ~closing
        latest = written.masked_fill(~stamped, begin - 1).amax(1, keepdim=True)
        early = is_time & (ids < latest + (~closing).long())
        return early | (opening & is_time) | (closing & ~is_time & (ids != EOS))


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


MIN_SECONDS = 0.1  # less at the end of a long recording holds no separate speech


class TimedTokens(NamedTuple):
    """Tokens with the log-probability of each, and begin and end of each in seconds; () if they are not known."""

    tokens: Sequence[int]
    scores: Sequence[float]
    times: Sequence[tuple[float, float]] = ()

    def cut(self, begin: int, end: int | None) -> "TimedTokens":
        return TimedTokens(self.tokens[begin:end], self.scores[begin:end], self.times[begin:end])

    def joined(self, after: "TimedTokens") -> "TimedTokens":
        times = [*self.times, *after.times] if self.times and after.times else ()
        return TimedTokens([*self.tokens, *after.tokens], [*self.scores, *after.scores], times)


@dataclass
class Reading:
    """A recording that is being transcribed: where its next window begins, and the transcript so far.

    Attributes:
        recording: the recording.
        windows: the way in which it is read.
        stretches: begin and end, in samples, of the parts that are read; None: the whole recording. No window reaches
            from one into the next.
        begin: the first sample of the next window.
        language: the code of the language; None before it is known.
        segments: begin, end and tokens of the transcript so far, in seconds.
        complete: False once an output reached the length limit, and was cut there.
    """

    recording: Recording
    windows: "Windows"
    stretches: list[tuple[int, int]] | None = None
    begin: int = 0
    language: str | None = None
    segments: list[tuple[float, float, TimedTokens]] = field(default_factory=list)
    complete: bool = True
    _coming: deque[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        whole = [(0, self.recording.length)] if self.recording.length else []
        self._coming = deque(whole if self.stretches is None else self.stretches)
        self.move_to(self.begin)

    @property
    def finished(self) -> bool:
        return not self._coming

    @property
    def stretch(self) -> tuple[int, int]:
        """First sample of the part of the recording that is being read, and the end of the part."""
        return self._coming[0]

    def move_to(self, sample: int) -> None:
        """Begin the next window at a sample, or at the next part if too little of this one is left."""
        self.begin = sample
        while self._coming:
            first, end = self._coming[0]
            self.begin = max(self.begin, first)
            if end - self.begin >= (MIN_SECONDS * self.recording.rate if self.begin > first else 1):
                return
            self._coming.popleft()
        self.begin = self.recording.length

    @property
    def heard(self) -> float:
        """Seconds of the recording that were read so far."""
        return self.recording.seconds if self.finished else self.begin / self.recording.rate

    @property
    def left(self) -> int:
        """Number of samples in the next window."""
        return min(self.windows.length, self.stretch[1] - self.begin)

    def window(self) -> Samples:
        return self.recording.read(self.begin, self.begin + self.left)

    def transcript(
        self, spell: Callable[[Sequence[int]], str], words: Callable[[TimedTokens], list[Word]] = lambda _: []
    ) -> Transcript:
        """Create the transcript so far, whose tokens `spell` turns into text, and `words` into words."""
        segments = [
            Segment(start, end, text, list(output.tokens), list(output.scores), words(output))
            for start, end, output in self.segments
            if self.windows.keeps(text := spell(output.tokens))
        ]
        return Transcript(segments, self.heard, self.language, self.complete)


class Windows(ABC):
    """Base class of the ways to read a long recording in windows.

    Attributes:
        length: samples of a window.
        times: ids of the time stamps that are written; empty: none.
    """

    times = range(0)

    def __init__(self, length: int) -> None:
        self.length = length

    def skip(self, reading: Reading) -> None:
        """Continue after a window without speech."""
        reading.move_to(reading.begin + reading.left)

    def keeps(self, text: str) -> bool:
        """True if a segment with this text is part of the transcript."""
        return bool(text)

    @abstractmethod
    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the tokens of the current window to a reading, and move on to the next window."""


class StampedWindows(Windows):
    """Windows of a model that writes time stamps: the next begins at the end of the last finished segment."""

    def __init__(self, length: int, tokens: SpeechTokens) -> None:
        super().__init__(length)
        self.tokens = tokens
        self.times = tokens.times

    def keeps(self, text: str) -> bool:
        """True if a text is more than punctuation, of which models write rows in long pauses."""
        return any(category(char)[0] not in "PZ" for char in text)

    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the segments between time stamps; what follows the last pair of them is read again in the next window."""
        offset, rate = reading.begin / reading.recording.rate, reading.recording.rate
        limit = (reading.begin + reading.left) / rate
        parts = list(self._segments(output))
        finished = [part for part in parts if part[1] is not None]
        reopened = bool(finished) and self._reopened(output)
        for start, end, part in finished if reopened else parts:
            stop = limit if end is None else min(offset + end, limit)
            self._add(reading, min(offset + start, stop), stop, part)
        last = finished[-1][1] if reopened else None
        reading.move_to(reading.begin + (reading.left if last is None else min(reading.left, round(last * rate))))

    @staticmethod
    def _add(reading: Reading, start: float, stop: float, part: TimedTokens) -> None:
        """Add a segment to a reading; one without a length has the time from the end of the one before.

        A model may put both time stamps at or beyond the end of the window. Where no time is left, the segment is a
        part of the one before.
        """
        begin = reading.begin / reading.recording.rate
        if stop <= start:
            start = max([begin, *(end for _, end, _ in reading.segments[-1:])])
        if stop > start:
            reading.segments.append((start, stop, part))
            return
        if reading.segments:
            first, end, before = reading.segments.pop()
            reading.segments.append((first, end, before.joined(part)))

    def _reopened(self, output: TimedTokens) -> bool:
        """True if a pair of time stamps is followed by a segment without an end, or by nothing."""
        stamps = [place for place, token in enumerate(output.tokens) if token in self.times]
        paired = any(b - a == 1 for a, b in pairwise(stamps))
        alone = len(output.tokens) > 1 and stamps[-1] == len(output.tokens) - 1 and stamps[-1] - 1 not in stamps
        return paired and not alone

    def _segments(self, output: TimedTokens) -> Iterator[tuple[float, float | None, TimedTokens]]:
        """Cut tokens at time stamps: start, end (None: there is none), and the text between them."""
        start, begin = 0.0, 0
        for place, token in enumerate(output.tokens):
            if token not in self.times:
                continue
            if place > begin:
                yield start, self.tokens.seconds(token), output.cut(begin, place)
            start, begin = self.tokens.seconds(token), place + 1
        if begin < len(output.tokens):
            yield start, None, output.cut(begin, None)


class OverlappingWindows(Windows):
    """Windows of a model without time stamps: each has a share in common with the one before."""

    def __init__(self, length: int, share: float) -> None:
        super().__init__(length)
        self.share = share

    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the text of the window as one segment, joined to the one before where both have the same words."""
        overlap = round(self.share * self.length)
        rate, (first, stop) = reading.recording.rate, reading.stretch
        start, end = reading.begin, reading.begin + reading.left
        is_first, is_last = start <= first, end == stop
        if not is_first and reading.segments:
            before_start, before_end, before = reading.segments[-1]
            left, right = seam(before.tokens, output.tokens, 2 * self.share)
            reading.segments[-1] = before_start, before_end, before.cut(0, left)
            output = output.cut(right, None)

        # Two neighbours meet in the middle of what both have read.
        half = overlap // 2
        reading.segments.append(((start + half * (not is_first)) / rate, (end - half * (not is_last)) / rate, output))
        reading.move_to(stop if is_last else start + self.length - overlap)

    def skip(self, reading: Reading) -> None:
        self.take(reading, TimedTokens([], []))


def seam(left: Sequence[int], right: Sequence[int], share: float) -> tuple[int, int]:
    """Find where the tokens of two windows are joined that have some words in common.

    That is the middle of the longest row of tokens that are in the last `share` of `left` and the first `share` of
    `right`. Returns the end in `left` and the begin in `right`: without common tokens all of both.
    """
    tail, head = (min(len(side), round(share * len(side))) for side in (left, right))
    skipped = len(left) - tail
    match = SequenceMatcher(None, left[skipped:], right[:head], autojunk=False).find_longest_match()
    if not match.size:
        return len(left), 0
    middle = match.size // 2
    return skipped + match.a + middle, match.b + middle
