r"""Subtitles, as SubRip (.srt) and WebVTT (.vtt): the words of the cues.

Times, numbers, settings, notes and styles stay as they are, and so do the tags of a text, such as <i>, <v Name> and
{\an8}. A text of several lines is one segment, unless the lines begin with dashes: then each speaker's words are one.
A new text is wrapped again, into at most as many lines as the old one has.

SubRip has no escapes: in a new text, "-->" and what looks like a tag get similar characters.
"""

import html
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, takewhile
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from heedful.documents.document import Place, Segment, TextDocument, decoded, with_tags
from heedful.documents.pieces import Piece, enclosed, segment, text_pieces
from heedful.errors import InputError

LINE_COLUMNS = 42  # the usual limit of a line of subtitles; characters of Chinese or Japanese count twice

LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
TIME = r"-?(?:\d+:)?\d+:\d+(?:[.,:]\d+)?"
TIMING = re.compile(rf"\s*{TIME}\s*-->\s*{TIME}(?:\s.*)?\Z")
ARROW = "-->"

SUBRIP_TAG = r"</?(?:b|i|u|s|strike|font|c|v|ruby|rt|lang|span|br)\b[^<>\r\n]*>|\{\\[^{}\r\n]*\}"
VTT_TAG = r"<[^<>]*>"
ENTITY = r"&(?:#\d+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);"
SIMILAR = str.maketrans("<>{}", "‹›❴❵")

DASH = r"[-‐–—](?:\s+(?=\S)|(?=[^\s\d\-‐–—]))"  # not that of a negative number, nor the first of several
SENTENCE_END = re.compile(r"[.?!…。？！:♪)\]\"”»'’]\Z")

SPACE = r"[^\S\xa0\u2007\u202f]"  # at which a line may end
UNSPACED = r"\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"  # Chinese and Japanese
OPENING, CLOSING = "（〔［｛〈《「『【〖“‘(", "）〕］｝〉》」』】〗”’)、。，．！？：；…・ー々!?,.:;"
BREAK = re.compile(
    rf"{SPACE}+|(?:(?<=[{UNSPACED}])(?=\S)|(?<=\S)(?=[{UNSPACED}]))(?<![{re.escape(OPENING)}])(?![{re.escape(CLOSING)}])"
)


class Notation(NamedTuple):
    """Notation of a format for the text of a cue: patterns of its tags and tokens, and a function that escapes text."""

    tag: re.Pattern[str]
    token: re.Pattern[str]
    escape: Callable[[str], str]


class Line(NamedTuple):
    begin: int
    end: int
    text: str


def read(data: bytes, name: str) -> TextDocument:
    """Read subtitles; which format they have is seen from their first line.

    Raises:
        InputError: The times of a cue cannot be read; or it has text, and no cue.
    """
    content, encoding = decoded(data, name)
    is_vtt = re.match(r"WEBVTT(?!\S)", content) is not None
    if name.lower().endswith(".vtt") and not is_vtt:
        raise InputError(
            f"{name}:1: does not begin with WEBVTT, and is not a WebVTT file; name it .srt if it is SubRip"
        )
    lines = [Line(match.start(1), match.end(1), match[1]) for match in LINE.finditer(content)]
    timings = [index for index, line in enumerate(lines) if TIMING.match(line.text)]
    _check_times(lines, name, is_vtt)
    if not is_vtt and not timings and content.strip():
        raise InputError(f"{name}:1: has no subtitles; each needs a line such as 00:00:01,000 --> 00:00:02,500")
    notation = VTT if is_vtt else SUBRIP
    places = []
    for begin, end in pairwise([*timings, len(lines)]):
        text = lines[begin + 1 : end]
        if is_vtt:
            text = list(takewhile(lambda line: line.text, text))
        elif end < len(lines) and text and text[-1].text.strip().isdecimal():
            text.pop()  # the number of the next cue
        for utterance in _utterances(text, notation):
            places += _places(content, utterance, notation)
    return TextDocument(content, encoding, places)


def _check_times(lines: list[Line], name: str, is_vtt: bool) -> None:
    """Refuse a cue whose times cannot be read: players drop it, and its text would stay as it is without notice."""
    for index, line in enumerate(lines):
        if ARROW not in line.text or TIMING.match(line.text):
            continue
        block = [other.text.strip() for other in lines[max(index - 2, 0) : index]]
        is_first = not block or not block[-1] or (block[-1].isdecimal() and not any(block[:-1]))
        if (is_vtt and not line.text.startswith("NOTE")) or (not is_vtt and is_first):
            message = "the times of this subtitle cannot be read; write 00:00:01.000 --> 00:00:02.500"
            raise InputError(f"{name}:{index + 1}: {message}")


def _utterances(lines: list[Line], notation: Notation) -> Iterator[list[Piece]]:
    """Yield the pieces of each text of a cue: a paragraph, or what one speaker says."""
    dashed = re.compile(rf"(?:{notation.tag.pattern}|\s)*({DASH})", notation.tag.flags)
    utterance: list[Piece] = []
    is_dialogue, previous = False, ""
    for line in lines:
        text = notation.tag.sub("", line.text).strip()
        dash = dashed.match(line.text)
        begins = bool(dash) and (not previous or is_dialogue or SENTENCE_END.search(previous) is not None)
        if begins or not text:
            yield utterance
            utterance = []
            is_dialogue = begins
        elif utterance:
            is_joined = re.search(rf"[{UNSPACED}]\Z", previous) and re.match(rf"[{UNSPACED}]", text)
            utterance.append(Piece(utterance[-1].end, line.begin, "" if is_joined else " "))
        utterance += _pieces(line, notation, dash.span(1) if dash and begins else (0, 0))
        previous = text
    yield utterance


def _pieces(line: Line, notation: Notation, dash: tuple[int, int]) -> list[Piece]:
    """Return the pieces of a line; the dash of a speaker is a tag that stands alone."""
    pieces, position = [], 0
    tokens = [match.span() for match in notation.token.finditer(line.text)]
    for begin, end in sorted([*tokens, dash] if dash[1] else tokens):
        pieces += text_pieces(line.begin + position, line.text[position:begin])
        token = line.text[begin:end]
        place = line.begin + begin, line.begin + end
        if token.startswith("&"):
            pieces.append(Piece(*place, html.unescape(token)))
        elif token.startswith("<") and not re.match(r"<[\d>]", token):  # WebVTT has times within a text
            name = re.sub(r"</?([^\s.>/]*).*", r"\1", token, flags=re.DOTALL).lower()
            pieces.append(Piece(*place, "", "close" if token.startswith("</") else "open", name))
        else:
            pieces.append(Piece(*place, "", "empty"))
        position = end
    return pieces + text_pieces(line.begin + position, line.text[position:])


def _places(content: str, pieces: list[Piece], notation: Notation) -> list[Place]:
    """Return the place of the text of an utterance, if it has one."""
    indices = enclosed(pieces)
    if not indices:
        return []
    pieces = pieces[indices.start : indices.stop]
    begin, end = pieces[0].begin, pieces[-1].end
    newlines = re.findall(r"\r\n|\r|\n", content[begin:end])
    newline = newlines[0] if newlines else "\n"
    written = partial(_written, line_count=len(newlines) + 1, newline=newline, escape=notation.escape)
    return [Place(begin, end, segment(content, pieces), written)]


def _written(segment: Segment, line_count: int, newline: str, escape: Callable[[str], str]) -> str:
    """Return a text in at most `line_count` lines. A tag that opens between two lines belongs to the second one."""
    text, tags = segment
    spans = wrapped(text, line_count)
    if not spans:  # an empty line would end the cue, and hide what others say in it
        text, spans = "\xa0", [(0, 1)]
    parts, position = [], 0
    for begin, end in spans:
        first = position
        while position < len(tags) and (
            tags[position].position < end + (tags[position].kind != "open") or end == spans[-1][1]
        ):
            position += 1
        here = [tag._replace(position=min(max(tag.position, begin), end) - begin) for tag in tags[first:position]]
        parts.append(with_tags(Segment(text[begin:end], tuple(here)), escape))
    return newline.join(parts)


def wrapped(text: str, line_count: int) -> list[tuple[int, int]]:
    """Return begin and end of each line of a text, as few lines as fit, and as even as possible.

    More than `line_count` lines are not made: if there are too many words, the lines are longer than `LINE_COLUMNS`.
    """
    columns = [0]
    for c in text:
        columns.append(columns[-1] + (0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1))
    gaps = [match.span() for match in BREAK.finditer(text)]
    begins, ends = [0, *(end for _, end in gaps)], [*(begin for begin, _ in gaps), len(text)]
    units = [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]

    def lines(limit: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for begin, end in units:
            if spans and columns[end] - columns[spans[-1][0]] <= limit:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((begin, end))
        return spans

    count = min(len(lines(LINE_COLUMNS)), line_count)
    return lines(bisect_left(range(columns[-1]), True, key=lambda limit: len(lines(limit)) <= count))


def _subrip(text: str) -> str:
    text = re.sub(SPACE, " ", text).replace(ARROW, "→")
    return SUBRIP.tag.sub(lambda tag: tag[0].translate(SIMILAR), text)


def _vtt(text: str) -> str:
    return html.escape(re.sub(SPACE, " ", text), quote=False)


SUBRIP = Notation(re.compile(SUBRIP_TAG, re.IGNORECASE), re.compile(SUBRIP_TAG, re.IGNORECASE), _subrip)
VTT = Notation(re.compile(VTT_TAG), re.compile(f"{VTT_TAG}|{ENTITY}"), _vtt)
