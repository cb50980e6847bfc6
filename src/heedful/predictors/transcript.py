"""Transcript of a recording: its text, in segments with their times, and the formats SRT, WebVTT and TSV."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from unicodedata import category, east_asian_width, name
from xml.sax.saxutils import escape

from heedful.predictors.word_times import Word


@dataclass(frozen=True)
class Segment:
    """Segment of a transcript: what was said from one second of the recording to another.

    Attributes:
        start: seconds from the beginning of the recording.
        end: seconds from the beginning of the recording.
        text: what was said.
        tokens: its ids, without time stamps.
        token_scores: log P of each of these tokens.
        words: its words with their times; empty unless `word_timestamps` asks for them.
    """

    start: float
    end: float
    text: str
    tokens: list[int]
    token_scores: list[float]
    words: list[Word] = field(default_factory=list)


@dataclass(frozen=True)
class Transcript:
    """Transcript of a recording.

    Attributes:
        segments: what was said, in order; none in silence. Without time stamps, a segment is a window of the recording.
        seconds: the length of the recording; of one that was not read to its end, of what was read.
        language: the code of the language, such as "en"; None if the model does not say.
        complete: False if what was said in a window of the recording reached the length limit, and was cut there.
    """

    segments: list[Segment]
    seconds: float
    language: str | None = None
    complete: bool = True

    @property
    def text(self) -> str:
        """The whole text: that of all segments, with a space between two unless both are Chinese or Japanese there."""
        return joined_texts([segment.text for segment in self.segments if segment.text])

    def __str__(self) -> str:
        return self.text


def joined_texts(texts: Sequence[str]) -> str:
    """Join texts with a space between two of them, unless both have wide letters or marks there, as in Chinese."""
    rest = [right if _unspaced(left[-1:]) and _unspaced(right[:1]) else f" {right}" for left, right in pairwise(texts)]
    return "".join([*texts[:1], *rest])


def _unspaced(letter: str) -> bool:
    """True for a letter or a mark of Chinese or Japanese; Korean has wide letters, too, and writes spaces."""
    wide = east_asian_width(letter or " ") in "WF" and category(letter)[0] in "LNP"
    return wide and not name(letter, "").startswith("HANGUL")


MAX_CUE_COLUMNS = 84  # two lines of 42, as subtitles have them
MAX_CUE_SECONDS = 8.0
MAX_PAUSE_SECONDS = 1.0  # within a cue
SENTENCE_ENDS = tuple(".!?…。！？")
CLOSING = "\"'”’»）)」』]"


def cues(segments: Sequence[Segment]) -> list[Segment]:
    """Join the segments of one sentence to cues, where a cue can hold it: two lines, eight seconds, no long pause."""
    joined: list[Segment] = []
    for segment in segments:
        if not joined or not _continues(joined[-1], segment):
            joined.append(segment)
            continue
        before = joined[-1]
        joined[-1] = Segment(
            before.start,
            segment.end,
            joined_texts([before.text, segment.text]),
            [*before.tokens, *segment.tokens],
            [*before.token_scores, *segment.token_scores],
            [*before.words, *segment.words],
        )
    return joined


def _continues(before: Segment, segment: Segment) -> bool:
    """True if a segment continues the sentence of the one before, and both are one cue."""
    ended = before.text.rstrip(CLOSING).endswith(SENTENCE_ENDS)
    fits = columns(before.text) + 1 + columns(segment.text) <= MAX_CUE_COLUMNS
    near = segment.start - before.end <= MAX_PAUSE_SECONDS and segment.end - before.start <= MAX_CUE_SECONDS
    return not ended and fits and near


def columns(text: str) -> int:
    """Number of columns of a text: two for each wide letter, such as those of Chinese."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def tsv(segments: Sequence[Segment]) -> str:
    """Format segments as a table: start and end in milliseconds, and the text."""
    rows = (
        f"{round(1000 * cue.start)}\t{round(1000 * cue.end)}\t{' '.join(cue.text.split())}\n" for cue in cues(segments)
    )
    return "".join(["start\tend\ttext\n", *rows])


def srt(segments: Sequence[Segment]) -> str:
    """Format segments as SubRip subtitles: numbered blocks with times such as 00:01:02,345."""
    blocks = _blocks(segments, ",", lambda text: text.replace("-->", "->"))  # an arrow would be read as times
    return "\n".join(f"{number}\n{block}" for number, block in enumerate(blocks, start=1))


def vtt(segments: Sequence[Segment]) -> str:
    """Format segments as WebVTT subtitles: blocks with times such as 00:01:02.345 (W3C, WebVTT, section 4)."""
    return "\n".join(["WEBVTT\n", *_blocks(segments, ".", escape)])  # "<" would begin a tag


def _blocks(segments: Sequence[Segment], comma: str, spelled: Callable[[str], str]) -> Iterator[str]:
    for segment in cues(segments):
        text = " ".join(segment.text.split())  # an empty line would end the block
        yield f"{clock(segment.start, comma)} --> {clock(segment.end, comma)}\n{spelled(text)}\n"


def clock(seconds: float, comma: str = ".") -> str:
    """Format seconds as hours, minutes, seconds and thousandths: 00:01:02.345."""
    total, thousandths = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(total, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{comma}{thousandths:03}"
