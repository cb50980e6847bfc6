"""Transcript of audio: its text, in segments with their times, and the formats SRT, WebVTT and TSV."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from unicodedata import category, east_asian_width, name
from xml.sax.saxutils import escape

from heedful.predictors.word_times import Word


@dataclass(frozen=True)
class Segment:
    """Segment of a transcript, with its times in seconds from the beginning of the audio."""

    start: float
    end: float
    text: str
    tokens: list[int]  # ids, without timestamps
    token_scores: Sequence[float]  # log P of each token
    words: list[Word] = field(default_factory=list)  # with their times; empty without `word_timestamps`


@dataclass(frozen=True)
class Transcript:
    """Transcript of audio.

    Attributes:
        segments: The segments in order; empty for silence. Without timestamps, each segment is a window of the audio.
        seconds: The length of the audio or, if it was not read to its end, of the part that was read.
        language: The language code, such as "en"; None if the model does not specify it.
        complete: False if the text of a window reached the length limit and was cut there.
    """

    segments: list[Segment]
    seconds: float
    language: str | None = None
    complete: bool = True

    @property
    def text(self) -> str:
        """Text of all segments, joined with spaces, except where Chinese or Japanese text meets."""
        return joined_texts([segment.text for segment in self.segments if segment.text])

    def __str__(self) -> str:
        return self.text


def joined_texts(texts: Sequence[str]) -> str:
    """Join texts with spaces, except where wide letters or punctuation meet, as in Chinese."""

    def is_unspaced(letter: str) -> bool:
        wide = east_asian_width(letter or " ") in "WF" and category(letter)[0] in "LNP"
        return wide and not name(letter, "").startswith("HANGUL")  # Korean also has wide letters, but writes spaces

    pairs = pairwise(texts)
    rest = [right if is_unspaced(left[-1:]) and is_unspaced(right[:1]) else f" {right}" for left, right in pairs]
    return "".join([*texts[:1], *rest])


MAX_CUE_COLUMNS = 84  # two lines of 42, as in subtitles
MAX_CUE_SECONDS = 8.0
MAX_PAUSE_SECONDS = 1.0  # within a cue
SENTENCE_ENDS = tuple(".!?…。！？")
CLOSING = "\"'”’»）)」』]"


def cues(segments: Sequence[Segment]) -> list[Segment]:
    """Join the segments of a sentence into cues if they fit into two lines and eight seconds, without a long pause."""
    joined: list[Segment] = []
    for segment in segments:
        if joined:
            before = joined[-1]
            ended = before.text.rstrip(CLOSING).endswith(SENTENCE_ENDS)
            fits = columns(before.text) + 1 + columns(segment.text) <= MAX_CUE_COLUMNS
            near = segment.start - before.end <= MAX_PAUSE_SECONDS and segment.end - before.start <= MAX_CUE_SECONDS
            if not ended and fits and near:
                joined[-1] = Segment(
                    before.start,
                    segment.end,
                    joined_texts([before.text, segment.text]),
                    [*before.tokens, *segment.tokens],
                    (),  # subtitles have no scores
                    [*before.words, *segment.words],
                )
                continue
        joined.append(segment)
    return joined


def columns(text: str) -> int:
    """Return the number of columns that a text takes up: wide characters, such as Chinese ones, take two."""
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


def _blocks(segments: Sequence[Segment], comma: str, escape_text: Callable[[str], str]) -> Iterator[str]:
    for segment in cues(segments):
        text = " ".join(segment.text.split())  # an empty line would end the block
        yield f"{clock(segment.start, comma)} --> {clock(segment.end, comma)}\n{escape_text(text)}\n"


def clock(seconds: float, comma: str = ".") -> str:
    """Format seconds as hours, minutes, seconds and thousandths: 00:01:02.345."""
    # Round first, so that 59.9996 seconds become a minute and not 60 seconds.
    total, thousandths = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(total, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{comma}{thousandths:03}"
