"""Windows of a recording that is longer than a model reads at once: where each begins, and what its tokens become.

With time stamps a window begins where the last segment that was finished ends (Radford et al. 2022, section 3.8).
Without them, each has a part in common with the one before, and is joined to it in the middle of what both say.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

from heedful.data.media.recordings import Recording
from heedful.data.media.resampling import Samples
from heedful.decode.transcript import Segment, Transcript
from heedful.decode.word_times import Word
from heedful.text.speech_tokens import SpeechTokens

SHORTEST = 0.1  # seconds: less at the end of a long recording holds no speech of its own


class Said(NamedTuple):
    """Tokens with the log-probability of each, and begin and end of each in seconds; () if they are not known."""

    tokens: Sequence[int]
    scores: Sequence[float]
    times: Sequence[tuple[float, float]] = ()

    def cut(self, begin: int, end: int | None) -> "Said":
        """The tokens from one place to another."""
        return Said(self.tokens[begin:end], self.scores[begin:end], self.times[begin:end])

    def joined(self, after: "Said") -> "Said":
        """These tokens, and those of another output after them."""
        times = [*self.times, *after.times] if self.times and after.times else ()
        return Said([*self.tokens, *after.tokens], [*self.scores, *after.scores], times)


@dataclass
class Reading:
    """A recording that is being transcribed: where its next window begins, and what was said so far.

    Attributes:
        recording: the recording.
        windows: the way in which it is read.
        stretches: begin and end, in samples, of the parts that are read; None: the whole recording. No window reaches
            from one into the next.
        begin: the first sample of the next window.
        language: the code of the language; None before it is known.
        segments: what was said before, with seconds and tokens.
        complete: False once an output reached the length limit, and was cut there.
    """

    recording: Recording
    windows: "Windows"
    stretches: list[tuple[int, int]] | None = None
    begin: int = 0
    language: str | None = None
    segments: list[tuple[float, float, Said]] = field(default_factory=list)
    complete: bool = True
    _coming: deque[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        whole = [(0, self.recording.length)] if self.recording.length else []
        self._coming = deque(whole if self.stretches is None else self.stretches)
        self.move_to(self.begin)

    @property
    def finished(self) -> bool:
        """True if the whole recording was read."""
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
            if end - self.begin >= (SHORTEST * self.recording.rate if self.begin > first else 1):
                return
            self._coming.popleft()
        self.begin = self.recording.length

    @property
    def heard(self) -> float:
        """Seconds of the recording that were read so far."""
        return self.recording.seconds if self.finished else self.begin / self.recording.rate

    @property
    def left(self) -> int:
        """Number of samples of the next window."""
        return min(self.windows.length, self.stretch[1] - self.begin)

    def window(self) -> Samples:
        """Read the samples of the next window."""
        return self.recording.read(self.begin, self.begin + self.left)

    def transcript(
        self, spell: Callable[[Sequence[int]], str], words: Callable[[Said], list[Word]] = lambda _: []
    ) -> Transcript:
        """Make the transcript of what was said so far, whose tokens `spell` turns into text, and `words` into words."""
        spelled = [(start, end, said, spell(said.tokens)) for start, end, said in self.segments]
        kept = [one for one in spelled if self.windows.keeps(one[3])]
        segments = [
            Segment(start, end, text, list(said.tokens), list(said.scores), words(said))
            for start, end, said, text in kept
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
        """Go on after a window in which nothing was said."""
        reading.move_to(reading.begin + reading.left)

    def keeps(self, text: str) -> bool:
        """True if a segment with this text is part of the transcript."""
        return bool(text)

    @abstractmethod
    def take(self, reading: Reading, said: Said) -> None:
        """Add what was said in the present window to a reading, and move on to the next window."""


class StampedWindows(Windows):
    """Windows of a model that writes time stamps: the next begins at the end of the last finished segment."""

    def __init__(self, length: int, tokens: SpeechTokens) -> None:
        super().__init__(length)
        self.tokens = tokens
        self.times = tokens.times

    def keeps(self, text: str) -> bool:
        """True if a text is more than punctuation, of which models write rows in long pauses."""
        return any(category(char)[0] not in "PZ" for char in text)

    def take(self, reading: Reading, said: Said) -> None:
        """Add the segments between time stamps; what follows the last pair of them is read again in the next window."""
        offset, rate = reading.begin / reading.recording.rate, reading.recording.rate
        limit = (reading.begin + reading.left) / rate
        parts = list(self._segments(said))
        finished = [part for part in parts if part[1] is not None]
        reopened = bool(finished) and self._reopened(said)
        for start, end, part in finished if reopened else parts:
            stop = limit if end is None else min(offset + end, limit)
            self._add(reading, min(offset + start, stop), stop, part)
        last = finished[-1][1] if reopened else None
        reading.move_to(reading.begin + (reading.left if last is None else min(reading.left, round(last * rate))))

    @staticmethod
    def _add(reading: Reading, start: float, stop: float, part: Said) -> None:
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
            first, end, said = reading.segments.pop()
            reading.segments.append((first, end, said.joined(part)))

    def _reopened(self, said: Said) -> bool:
        """True if a pair of time stamps is followed by a segment without an end, or by nothing."""
        stamps = [place for place, token in enumerate(said.tokens) if token in self.times]
        paired = any(b - a == 1 for a, b in pairwise(stamps))
        alone = len(said.tokens) > 1 and stamps[-1] == len(said.tokens) - 1 and stamps[-1] - 1 not in stamps
        return paired and not alone

    def _segments(self, said: Said) -> Iterator[tuple[float, float | None, Said]]:
        """Cut tokens at time stamps: start, end (None: there is none), and the text between them."""
        start, begin = 0.0, 0
        for place, token in enumerate(said.tokens):
            if token not in self.times:
                continue
            if place > begin:
                yield start, self.tokens.seconds(token), said.cut(begin, place)
            start, begin = self.tokens.seconds(token), place + 1
        if begin < len(said.tokens):
            yield start, None, said.cut(begin, None)


class OverlappingWindows(Windows):
    """Windows of a model without time stamps: each has a share in common with the one before."""

    def __init__(self, length: int, share: float) -> None:
        super().__init__(length)
        self.share = share

    def take(self, reading: Reading, said: Said) -> None:
        """Add the text of the window as one segment, joined to the one before where both say the same."""
        common = round(self.share * self.length)
        rate, (first, length) = reading.recording.rate, reading.stretch
        start, end = reading.begin, reading.begin + reading.left
        whole, joined = end == length, start > first
        if joined and reading.segments:
            before = reading.segments[-1]
            left, right = seam(before[2].tokens, said.tokens, 2 * self.share)
            reading.segments[-1] = (*before[:2], before[2].cut(0, left))
            said = said.cut(right, None)
        half = common // 2
        reading.segments.append(((start + half * joined) / rate, (end - half * (not whole)) / rate, said))
        reading.move_to(length if whole else start + self.length - common)

    def skip(self, reading: Reading) -> None:
        """Go on after a window in which nothing was said."""
        self.take(reading, Said([], []))


def seam(left: Sequence[int], right: Sequence[int], share: float) -> tuple[int, int]:
    """Find where two outputs are joined that have some words in common: the end of the first, the begin of the second.

    Args:
        left: the tokens of a window.
        right: the tokens of the next window.
        share: the share of the tokens at the end of one and the beginning of the other that may be the same words.

    Returns:
        The middle of the longest row of tokens that both have there; the ends, where they have none.
    """
    tail, head = (min(len(side), round(share * len(side))) for side in (left, right))
    skipped = len(left) - tail
    found = SequenceMatcher(None, left[skipped:], right[:head], autojunk=False).find_longest_match()
    if not found.size:
        return len(left), 0
    middle = found.size // 2
    return skipped + found.a + middle, found.b + middle
