"""XML: the tags and texts of a file in order, with their places.

A file that defines entities or names other files (DOCTYPE) is refused, and so is an encoding other than Unicode's.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Literal, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from heedful.documents.pieces import Piece, text_pieces
from heedful.errors import InputError

UNICODE = ("UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE")
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Kind = Literal["start", "end", "text", "other"]
TagKind = Literal["open", "close", "empty"]


class Event(NamedTuple):
    """A tag, a text, or something else such as a comment, from `begin` to before `end`.

    An element that is written as one tag, such as <x/>, has a start that is as long as the tag, and an empty end.
    """

    kind: Kind
    begin: int
    end: int
    text: str
    attributes: dict[str, str]

    @property
    def name(self) -> str:
        """Name of the element, without the prefix of its namespace."""
        return self.text.rpartition(":")[2]


class _Recorder:
    """Handlers of a parser that record what it finds, and the byte where that begins."""

    def __init__(self, name: str):
        self.name = name
        self.records: list[tuple[int, Kind, str, dict[str, str]]] = []
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = False  # so that each character reference is a text
        self.parser.StartElementHandler = lambda text, attributes: self._record("start", text, attributes)
        self.parser.EndElementHandler = lambda text: self._record("end", text)
        self.parser.CharacterDataHandler = lambda text: self._record("text", text)
        self.parser.DefaultHandler = lambda _: self._record("other")
        self.parser.StartCdataSectionHandler = lambda: self._record("other")
        self.parser.EndCdataSectionHandler = lambda: self._record("other")
        self.parser.XmlDeclHandler = self._declaration
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _record(self, kind: Kind, text: str = "", attributes: dict[str, str] | None = None) -> None:
        self.records.append((self.parser.CurrentByteIndex, kind, text, attributes or {}))

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding and encoding.upper() not in UNICODE:
            raise InputError(f"{self.name}:1: is in {encoding}; convert the file to UTF-8, and write encoding='UTF-8'")
        self._record("other", version + str(standalone))

    def _doctype(self, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise InputError(f"{self.name}:{line}: has a DOCTYPE, which could name other files; delete it")


def events(content: str, name: str) -> list[Event]:
    """Return all that is in an XML file."""
    data = content.encode()
    recorder = _Recorder(name)
    try:
        recorder.parser.Parse(data, True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise InputError(f"{name}:{error.lineno}: is not valid XML: {message}; correct the file") from error
    begins = [begin for begin, *_ in recorder.records]
    positions = [len(data[: begins[0]].decode())] if begins else []
    for begin, end in pairwise([*begins, len(data)]):
        positions.append(positions[-1] + len(data[begin:end].decode()))
    spans = pairwise(positions)
    return [Event(kind, *span, text, each) for (_, kind, text, each), span in zip(recorder.records, spans, strict=True)]


def inline_pieces(parts: Sequence[Event], code_kind: Callable[[Event], TagKind | None]) -> list[Piece]:
    """Return the pieces of the text of an element.

    Args:
        parts: What is between its tags.
        code_kind: Says which elements are tags with all that they contain, and of which kind; None for the others.
    """
    pieces: list[Piece] = []
    code, kind, depth = None, None, 0
    for event, following in zip_longest(parts, parts[1:]):
        if event.kind == "start":
            is_alone = following is not None and following.begin == following.end  # such as <x/>
            kind = kind if code else code_kind(event) or ("empty" if is_alone else None)
            if kind:
                code, depth = code or event, depth + 1
            else:
                pieces.append(Piece(event.begin, event.end, "", "open", event.text))
        elif event.kind == "end" and code is None:
            pieces.append(Piece(event.begin, event.end, "", "close", event.text))
        elif event.kind == "end":
            depth -= 1
            if code and kind and depth == 0:
                keys = [code.attributes[key] for key in ("rid", "startRef", "id") if key in code.attributes]
                pieces.append(Piece(code.begin, event.end, "", kind, f"code {keys[:1]}"))
                code = None
        elif event.kind == "text" and code is None:
            is_verbatim = event.end - event.begin == len(event.text)
            character = [Piece(event.begin, event.end, event.text)]
            pieces += text_pieces(event.begin, event.text) if is_verbatim else character
    return pieces


def escaped(text: str) -> str:
    """Return a text with character references; XML cannot have most control characters, which are replaced."""
    return escape(NOT_IN_XML.sub("\ufffd", text), {"\r": "&#13;"})
