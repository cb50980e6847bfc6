"""Plain text (.txt): each line is a text to translate; lines that a line break in a sentence connects are one."""

import re
import textwrap
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from heedful.documents.document import Place, Segment, TextDocument, decoded

MIN_WIDTH, MAX_WIDTH = 40, 120  # characters of the longest line in a hard-wrapped paragraph
_ENDS = re.compile(r"[.!?:;…。！？：；][\"'”’»)\]]*$")
_BULLET = re.compile(r"(?:[-–—*•·‣▪◦>]+|#{1,6}|\(?\w{1,3}[.)])\s")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef]")  # written without spaces


class Line(NamedTuple):
    """Line of a text, at character `begin` of the file: its blanks at the beginning, and the rest without blanks."""

    begin: int
    indent: str
    text: str

    @property
    def end(self) -> int:
        return self.begin + self.width

    @property
    def width(self) -> int:
        return len(self.indent) + len(self.text)


def read(data: bytes, name: str) -> TextDocument:
    """Find the lines of a text. Lines of a hard-wrapped paragraph are one text, which is wrapped again when written."""
    content, encoding = decoded(data, name)
    places = [place for paragraph in _paragraphs(content) for place in _places(paragraph)]
    return TextDocument(content, encoding, places)


def _paragraphs(content: str) -> Iterator[list[Line]]:
    """Yield the lines between blank lines."""
    paragraph: list[Line] = []
    for match in re.finditer(r"([^\S\r\n]*)([^\r\n]*)(?:\r\n|\r|\n|$)", content):
        if text := match[2].rstrip():
            paragraph.append(Line(match.start(), match[1], text))
        elif paragraph:
            yield paragraph
            paragraph = []


def _places(paragraph: list[Line]) -> Iterator[Place]:
    width = max(line.width for line in paragraph)
    lines: list[Line] = []
    for line, following in zip(paragraph, [*paragraph[1:], None], strict=True):
        lines.append(line)
        if following is None or not _continues(line, following, width):
            yield _place(lines, width)
            lines = []


def _continues(line: Line, following: Line, width: int) -> bool:
    """Return True if a sentence continues in the next line, because its next word did not fit into this line."""
    if not MIN_WIDTH <= width <= MAX_WIDTH or _ENDS.search(line.text) or _BULLET.match(following.text):
        return False
    is_wide = _WIDE.match(following.text)
    word = following.text[0] if is_wide else following.text.split()[0]
    return line.width + (not is_wide) + len(word) > width


def _place(lines: list[Line], width: int) -> Place:
    text = lines[0].text
    for line in lines[1:]:
        text += line.text if _WIDE.match(text[-1]) and _WIDE.match(line.text) else f" {line.text}"
    begin = lines[0].begin + len(lines[0].indent)
    if len(lines) == 1:
        return Place(begin, lines[0].end, Segment(text), _on_one_line)
    return Place(begin, lines[-1].end, Segment(text), partial(_wrapped, lines, width))


def _on_one_line(segment: Segment) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", segment.text)


def _wrapped(lines: list[Line], width: int, segment: Segment) -> str:
    """Break a text into lines of the paragraph's width, with the indentation of the second line."""
    text = _on_one_line(segment)
    first = " " * len(lines[0].indent)  # the first line's indentation remains in the file
    filled = textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=lines[1].indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.removeprefix(first)
