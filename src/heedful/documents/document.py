"""A document: its translatable texts, and the same file with other texts in their places.

A reader of a format finds the places of the texts in the content of a file. All else in the file is copied unchanged,
and so is a text that does not change: a document whose texts stay the same stays the same byte for byte.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from heedful.errors import InputError
from heedful.registry import DOCUMENTS
from heedful.storage.paths import unreadable
from heedful.wording import either

# The byte order mark that a file begins with, by encoding. "utf-16" would write the bytes in the order of this machine.
MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}

# Names that programs read, such as btn-primary, user.name, maxItems, MAX_SIZE and #ff0000.
_IDENTIFIER = re.compile(
    r"[a-z][a-z0-9]*(?:[-_./:][A-Za-z0-9]+)+|[a-z]+[A-Z]\w*|[A-Z0-9]+(?:_[A-Z0-9]+)+|#[0-9A-Fa-f]{3,8}"
)


class Tag(NamedTuple):
    """Inline markup at a position of a text, such as <b>: the number of characters before it, and its form in the file.

    An empty tag is single, such as a line break or an image.
    """

    position: int
    markup: str
    kind: Literal["open", "close", "empty"]


class Segment(NamedTuple):
    """Text to translate, usually a paragraph, with its inline markup in order; `text` has neither tags nor escapes."""

    text: str
    tags: tuple[Tag, ...] = ()


class Document(Protocol):
    """Content of a file, with its texts."""

    @property
    def segments(self) -> Sequence[Segment]:
        """Texts to translate, in the order of the file."""
        ...

    def with_segments(self, segments: Sequence[Segment]) -> bytes:
        """Return the file with other texts in the places of `self.segments`, one for each."""
        ...


class Place(NamedTuple):
    """Place of a text in the content of a file.

    Attributes:
        begin: The first character that a new text replaces.
        end: The character after the last one that a new text replaces.
        segment: The text to translate.
        written: Returns a text in the notation of the file, with its tags and escapes.
        is_target: True in a bilingual file, where the place is that of the translation: it is filled in any case.
    """

    begin: int
    end: int
    segment: Segment
    written: Callable[[Segment], str]
    is_target: bool = False


@dataclass(frozen=True)
class TextDocument:
    """Document of a text format: the characters of the file, with the places of its texts in order."""

    content: str
    encoding: str
    places: Sequence[Place]

    @property
    def segments(self) -> Sequence[Segment]:
        return [place.segment for place in self.places]

    def with_segments(self, segments: Sequence[Segment]) -> bytes:
        parts, position = [], 0
        for place, segment in zip(self.places, segments, strict=True):
            is_same = segment == place.segment and not place.is_target
            present = self.content[place.begin : place.end]
            parts += [self.content[position : place.begin], present if is_same else place.written(segment)]
            position = place.end
        content = "".join([*parts, self.content[position:]])
        data = content.encode(self.encoding.removesuffix("-sig"), errors="replace")  # half a surrogate pair becomes "?"
        return MARKS.get(self.encoding, b"") + data


def with_tags(segment: Segment, escape: Callable[[str], str]) -> str:
    """Return the text of a segment with its tags, and what is between them with escapes."""
    parts, position = [], 0
    for tag in segment.tags:
        parts += [escape(segment.text[position : tag.position]), tag.markup]
        position = tag.position
    return "".join([*parts, escape(segment.text[position:])])


def whole(text: str) -> str:
    """Return a text whose surrogates are joined to characters; half a pair becomes the replacement character."""
    return text.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def decoded(data: bytes, name: str) -> tuple[str, str]:
    """Decode the content of a file that is UTF-8, or UTF-16 with a byte order mark; return it and its encoding."""
    encoding, mark = next((each for each in MARKS.items() if data.startswith(each[1])), ("utf-8", b""))
    codec = encoding.removesuffix("-sig")
    try:
        return data.removeprefix(mark).decode(codec), encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: is not {codec.upper()} text; convert the file to UTF-8") from error


def edges(text: str) -> tuple[str, str, str]:
    """Return the whitespace at the beginning of a text, the text without that at its edges, and that at its end.

    The whitespace at the edges of a string belongs to the file, and not to the text to translate.
    """
    words = text.strip()
    begin = len(text) - len(text.lstrip())
    return text[:begin], words, text[begin + len(words) :]


def is_identifier(text: str) -> bool:
    """Return True if a string of a program seems to be a name or a code, which must not be translated."""
    return _IDENTIFIER.fullmatch(text) is not None


def is_document(path: Path) -> bool:
    """Return True if the name of a file has the ending of a document."""
    return _ending(path) in DOCUMENTS


def read_document(path: Path) -> Document:
    """Read a document in the format that the ending of its name stands for."""
    if not is_document(path):
        endings = either(f".{ending}" for ending in DOCUMENTS)
        raise InputError(f"{path}: is not a document that heedful can read; the name must end in {endings}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(unreadable(path, error)) from error
    return DOCUMENTS[_ending(path)](data, str(path))


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
