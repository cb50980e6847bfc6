"""Transcription of long audio: its windows, and a decoding state that applies the rules for tokens of a transcript.

R rows of a batch, T tokens written so far, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from heedful.media.audio_reader import AudioReader
from heedful.predictors.transcript import Segment, Transcript
from heedful.predictors.word_times import Word
from heedful.text.speech_tokens import STEP, SpeechTokens
from heedful.text.tokenizer import BOS, EOS, PAD

MAX_FIRST_SECONDS = 1.0  # within which the first segment of a window begins
MIN_SECONDS = 0.1  # a shorter remainder of a stretch is skipped: it contains no separate speech


@dataclass(frozen=True)
class SpeechRules:
    """Rules that determine which tokens may come next in a transcript."""

    suppressed: Bool[Tensor, " V"]  # True for tokens that are never generated
    suppressed_first: Bool[Tensor, " V"]  # True for tokens that are never generated first
    times: range  # the ids of the timestamps; empty if none are generated

    @classmethod
    def of(cls, tokens: SpeechTokens, config: TranscribeConfig, times: range, vocabulary: int) -> "SpeechRules":
        """Create rules that suppress the tokens in the settings, and the tokens that only a prompt contains."""
        suppressed, first = (torch.zeros(vocabulary, dtype=torch.bool) for _ in range(2))
        # <eos> is one of the controls in Whisper's vocabulary, but ends every transcript.
        suppressed[sorted({PAD, BOS, *config.suppress, *(tokens.controls - set(times))} - {EOS})] = True
        first[list(config.suppress_first)] = True
        return cls(suppressed, suppressed | first, times)

    def to(self, device: torch.device) -> "SpeechRules":
        return SpeechRules(self.suppressed.to(device), self.suppressed_first.to(device), self.times)

    def apply(self, logits: Float[Tensor, "R V"], written: Int[Tensor, "R T"]) -> Float[Tensor, "R V"]:
        """Return the logits, with minus infinity for tokens that may not follow the written ones."""
        logits = logits.masked_fill(self.suppressed if written.size(1) else self.suppressed_first, -torch.inf)
        if not self.times:
            return logits
        logits = logits.masked_fill(self.forbidden(written, logits.size(1)), -torch.inf)

        # If all timestamps together are more probable than any other token, only timestamps remain.
        begin, end = self.times.start, self.times.stop
        times = logits[:, begin:end].float().logsumexp(1)
        others = torch.cat([logits[:, :begin], logits[:, end:]], dim=1).float().amax(1)
        overruled = (times > others)[:, None].repeat(1, logits.size(1))
        overruled[:, begin:end] = False
        return logits.masked_fill(overruled, -torch.inf)

    def forbidden(self, written: Int[Tensor, "R T"], vocabulary: int) -> Bool[Tensor, "R V"]:
        """Return a mask of the tokens that would break the order of timestamps.

        The first token is a timestamp of at most `MAX_FIRST_SECONDS`. Later timestamps come in pairs, the end of a
        segment and the beginning of the next, except that the last one may be single. Timestamps never decrease, and
        no segment is empty.
        """
        begin, end = self.times.start, self.times.stop
        ids = torch.arange(vocabulary, device=written.device)
        is_time = (ids >= begin) & (ids < end)
        if not written.size(1):
            limit = begin + round(MAX_FIRST_SECONDS / STEP)
            return (~is_time | (ids > limit)).expand(len(written), -1)
        stamped = (written >= begin) & (written < end)
        last = stamped[:, -1:]
        # A timestamp after text closes a segment: its partner or <eos> follows. Any other opens one: text follows.
        closing = last & ~stamped[:, -2:-1] if written.size(1) > 1 else torch.zeros_like(last)
        opening = last & ~closing
        latest = written.masked_fill(~stamped, begin - 1).amax(1, keepdim=True)
        # The next segment may begin when the last one ends, but must end later than it begins.
        early = is_time & (ids < latest + (~closing).long())
        return early | (opening & is_time) | (closing & ~is_time & (ids != EOS))


class SpeechState:
    """Decoding state that is fed a prompt before a search begins, and masks the tokens that its rules do not allow.

    Attributes:
        begin: The token to feed to each row next; when a search begins, the last token of the prompt.
        first_logits: The logits after <bos>, one row for each clip; None before it is fed.
    """

    def __init__(self, state: DecodingState, rules: SpeechRules) -> None:
        self.state = state
        self.rules = rules
        self.begin = state.begin
        self.first_logits: Float[Tensor, "R V"] | None = None
        self.written: Int[Tensor, "R T"] | None = None  # None before the search begins

    def prompt(self) -> Float[Tensor, "R V"]:
        """Feed a token of the prompt, `begin`, and return the logits after it; the caller sets `begin` to the next."""
        return self._fed(self.begin)

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token to each row; return the logits of the next, minus infinity for tokens that are not allowed."""
        fed = tokens[:, None]
        # The first token that a search feeds is the last one of the prompt, which is not part of the transcript.
        self.written = fed[:, :0] if self.written is None else torch.cat([self.written, fed], dim=1)
        return self.rules.apply(self._fed(tokens), self.written)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.state.select(rows)
        if self.written is not None:
            self.written = self.written[rows]

    def _fed(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        logits = self.state.step(tokens)
        if self.first_logits is None:
            self.first_logits = logits
        return logits


class TimedTokens(NamedTuple):
    """Tokens, the log-probability of each, and the beginning and end of each in seconds; `times` may be empty."""

    tokens: Sequence[int]
    scores: Sequence[float]
    times: Sequence[tuple[float, float]] = ()

    def cut(self, begin: int, end: int | None) -> "TimedTokens":
        return TimedTokens(self.tokens[begin:end], self.scores[begin:end], self.times[begin:end])

    def joined(self, after: "TimedTokens") -> "TimedTokens":
        times = [*self.times, *after.times] if self.times and after.times else ()
        return TimedTokens([*self.tokens, *after.tokens], [*self.scores, *after.scores], times)


class Reading:
    """Audio that is being transcribed: where its next window begins, and the transcript so far.

    Attributes:
        audio: The audio.
        windows: How the audio is split into windows.
        begin: The first sample of the next window.
        language: The code of the language; None before it is detected.
        segments: The transcript so far: the beginning and end of each segment in seconds, and its tokens.
        complete: False once an output has reached the length limit and was cut there.
    """

    def __init__(
        self,
        audio: AudioReader,
        windows: "Windows",
        stretches: Sequence[tuple[int, int]] | None = None,
        begin: int = 0,
        language: str | None = None,
    ) -> None:
        """Start reading `stretches` of the audio, each given as its first sample and its end; None: the whole audio.

        No window extends from one stretch into the next.
        """
        self.audio = audio
        self.windows = windows
        self.language = language
        self.segments: list[tuple[float, float, TimedTokens]] = []
        self.complete = True
        whole = [(0, audio.length)] if audio.length else []
        self._stretches = deque(whole if stretches is None else stretches)
        self.move_to(begin)

    @property
    def finished(self) -> bool:
        return not self._stretches

    @property
    def stretch(self) -> tuple[int, int]:
        """First sample and end of the part of the audio that is being read."""
        return self._stretches[0]

    def move_to(self, sample: int) -> None:
        """Begin the next window at a sample, or at the next stretch if too little of this one remains."""
        self.begin = sample
        while self._stretches:
            first, end = self._stretches[0]
            self.begin = max(self.begin, first)
            if end - self.begin >= (MIN_SECONDS * self.audio.rate if self.begin > first else 1):
                return
            self._stretches.popleft()
        self.begin = self.audio.length

    @property
    def window_length(self) -> int:
        """Number of samples in the next window."""
        return min(self.windows.length, self.stretch[1] - self.begin)

    def window(self) -> Samples:
        return self.audio.read(self.begin, self.begin + self.window_length)

    @property
    def seconds(self) -> float:
        """Seconds of the audio that have been read."""
        return self.audio.seconds if self.finished else self.begin / self.audio.rate

    def transcript(
        self, spell: Callable[[Sequence[int]], str], words: Callable[[TimedTokens], list[Word]] = lambda _: []
    ) -> Transcript:
        """Create the transcript so far; `spell` turns tokens into text, and `words` turns timed tokens into words."""
        segments = [
            Segment(start, end, text, list(output.tokens), output.scores, words(output))
            for start, end, output in self.segments
            if self.windows.keeps(text := spell(output.tokens))
        ]
        return Transcript(segments, self.seconds, self.language, self.complete)


class Windows(ABC):
    """Base class of the ways to read long audio in windows.

    Attributes:
        length: Samples in a window.
        times: Ids of the timestamps that are generated; empty: none.
    """

    times = range(0)

    def __init__(self, length: int) -> None:
        self.length = length

    def skip(self, reading: Reading) -> None:
        """Continue after a window without speech."""
        reading.move_to(reading.begin + reading.window_length)

    def keeps(self, text: str) -> bool:
        """Return True if a segment with this text is part of the transcript."""
        return bool(text)

    @abstractmethod
    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the tokens of the current window to a reading, and move to the next window."""


class TimestampedWindows(Windows):
    """Windows of a model that generates timestamps: the next one may begin at the end of the last finished segment."""

    def __init__(self, length: int, tokens: SpeechTokens) -> None:
        super().__init__(length)
        self.tokens = tokens
        self.times = tokens.times

    def keeps(self, text: str) -> bool:
        """Return True if a text is more than punctuation, which models repeat in long pauses."""
        return any(category(char)[0] not in "PZ" for char in text)

    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the segments between timestamps, and move to the next window.

        If there is a pair of timestamps, audio after the last finished segment is decoded again, unless a single
        timestamp ends the output.
        """
        offset, rate = reading.begin / reading.audio.rate, reading.audio.rate
        limit = (reading.begin + reading.window_length) / rate
        parts = list(self._segments(output))
        finished = [part for part in parts if part[1] is not None]
        reopened = bool(finished) and self._reopened(output)
        for start, end, part in finished if reopened else parts:
            stop = limit if end is None else min(offset + end, limit)
            begin = min(offset + start, stop)
            # A model may put both timestamps at or beyond the end of the window. An empty segment gets the time since
            # the previous segment or, if none remains, becomes a part of that segment.
            if stop <= begin:
                begin = max([offset, *(earlier for _, earlier, _ in reading.segments[-1:])])
            if stop > begin:
                reading.segments.append((begin, stop, part))
            elif reading.segments:
                first, last, before = reading.segments.pop()
                reading.segments.append((first, last, before.joined(part)))
        stop = finished[-1][1] if reopened else None
        size = reading.window_length
        reading.move_to(reading.begin + (size if stop is None else min(size, round(stop * rate))))

    def _reopened(self, output: TimedTokens) -> bool:
        """Return True if the last pair of timestamps is followed by a segment without an end, or by nothing."""
        stamps = [index for index, token in enumerate(output.tokens) if token in self.times]
        paired = any(b - a == 1 for a, b in pairwise(stamps))
        single = len(output.tokens) > 1 and stamps[-1] == len(output.tokens) - 1 and stamps[-1] - 1 not in stamps
        return paired and not single

    def _segments(self, output: TimedTokens) -> Iterator[tuple[float, float | None, TimedTokens]]:
        """Split tokens at timestamps: yield the start, the end (None if it is missing) and the tokens between them."""
        start, begin = 0.0, 0
        for index, token in enumerate(output.tokens):
            if token not in self.times:
                continue
            if index > begin:
                yield start, self.tokens.seconds(token), output.cut(begin, index)
            start, begin = self.tokens.seconds(token), index + 1
        if begin < len(output.tokens):
            yield start, None, output.cut(begin, None)


class OverlappingWindows(Windows):
    """Windows of a model without timestamps: each overlaps the previous one by a share of its length."""

    def __init__(self, length: int, share: float) -> None:
        super().__init__(length)
        self.share = share

    def take(self, reading: Reading, output: TimedTokens) -> None:
        """Add the text of the window as one segment, joined to the previous one where both have the same words."""
        overlap = round(self.share * self.length)
        rate, (first, stop) = reading.audio.rate, reading.stretch
        start, end = reading.begin, reading.begin + reading.window_length
        is_first, is_last = start <= first, end == stop
        if not is_first and reading.segments:
            before_start, before_end, before = reading.segments[-1]
            # Twice the overlap is searched, because tokens are not spread evenly over the time of a window.
            end_before, begin_here = seam(before.tokens, output.tokens, 2 * self.share)
            reading.segments[-1] = before_start, before_end, before.cut(0, end_before)
            output = output.cut(begin_here, None)

        # Neighbours meet in the middle of their overlap.
        half = overlap // 2
        reading.segments.append(((start + half * (not is_first)) / rate, (end - half * (not is_last)) / rate, output))
        reading.move_to(stop if is_last else start + self.length - overlap)

    def skip(self, reading: Reading) -> None:
        self.take(reading, TimedTokens([], []))


def seam(first: Sequence[int], second: Sequence[int], share: float) -> tuple[int, int]:
    """Find where to join the tokens of two windows that overlap.

    They are joined in the middle of the longest run of tokens that is both in the last `share` of `first` and in the
    first `share` of `second`.

    Returns:
        The index where `first` ends, and the index where `second` begins; without common tokens, both are kept whole.
    """
    tail, head = (min(len(side), round(share * len(side))) for side in (first, second))
    skipped = len(first) - tail
    # `autojunk` would ignore frequent tokens, such as commas, in sequences of 200 tokens or more.
    match = SequenceMatcher(None, first[skipped:], second[:head], autojunk=False).find_longest_match()
    if not match.size:
        return len(first), 0
    middle = match.size // 2
    return skipped + match.a + middle, match.b + middle
