"""Transcript of a recording: its text, in segments with their times, and the formats of subtitles SRT and WebVTT."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Segment:
    """Segment of a transcript: what was said from one second of the recording to another.

    Attributes:
        start: seconds from the beginning of the recording.
        end: seconds from the beginning of the recording.
        text: what was said.
        tokens: its ids, without time stamps.
        token_scores: log P of each of these tokens.
    """

    start: float
    end: float
    text: str
    tokens: list[int]
    token_scores: list[float]


@dataclass(frozen=True)
class Transcript:
    """Transcript of a recording.

    Attributes:
        segments: what was said, in order; none in silence. Without time stamps, a segment is a window of the recording.
        seconds: the length of the recording; of one that was not heard to its end, of what was heard.
        language: the code of the language, such as "en"; None if the model does not say.
        complete: False if what was said in a window of the recording reached the length limit, and was cut there.
    """

    segments: list[Segment]
    seconds: float
    language: str | None = None
    complete: bool = True

    @property
    def text(self) -> str:
        """The whole text, on one line."""
        return " ".join(segment.text for segment in self.segments if segment.text)

    def __str__(self) -> str:
        return self.text


def srt(segments: Sequence[Segment]) -> str:
    """Format segments as SubRip subtitles: numbered blocks with times such as 00:01:02,345."""
    blocks = _blocks(segments, ",", lambda text: text.replace("-->", "->"))  # an arrow would be read as times
    return "\n".join(f"{number}\n{block}" for number, block in enumerate(blocks, start=1))


def vtt(segments: Sequence[Segment]) -> str:
    """Format segments as WebVTT subtitles: blocks with times such as 00:01:02.345 (W3C, WebVTT, section 4)."""
    return "\n".join(["WEBVTT\n", *_blocks(segments, ".", escape)])  # "<" would begin a tag


def _blocks(segments: Sequence[Segment], comma: str, spelled: Callable[[str], str]) -> Iterator[str]:
    for segment in segments:
        yield f"{clock(segment.start, comma)} --> {clock(segment.end, comma)}\n{spelled(segment.text)}\n"


def clock(seconds: float, comma: str = ".") -> str:
    """Format seconds as hours, minutes, seconds and thousandths: 00:01:02.345."""
    total, thousandths = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(total, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{comma}{thousandths:03}"
