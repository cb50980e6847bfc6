"""A document: its translatable texts, and the same file with other texts in their places.

A reader of a format finds the places of the texts in the content of a file. All else in the file is copied unchanged,
and so is a text that does not change: a document whose texts stay the same stays the same byte for byte.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
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

    An empty tag is single, such as a line break or an image; a tag that is a word of its sentence, such as inline code,
    is translated as a name is.
    """

    position: int
    markup: str
    kind: Literal["open", "close", "empty", "word"]


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
        inner: The places in the markup of the tags, such as the description of an image, in order.
    """

    begin: int
    end: int
    segment: Segment
    written: Callable[[Segment], str]
    is_target: bool = False
    inner: "tuple[InnerPlace, ...]" = ()


class InnerPlace(NamedTuple):
    """Place in the markup of tag number `tag` of a segment, `position` characters after the beginning of the markup."""

    tag: int
    position: int
    place: Place


@dataclass(frozen=True)
class TextDocument:
    """Document of a text format: the characters of the file, with the places of its texts in order.

    The segment of a place precedes those of its inner places. `errors` is an argument of `str.encode`.
    """

    content: str
    encoding: str
    places: Sequence[Place]
    errors: str = "replace"  # half a surrogate pair becomes "?"

    @property
    def segments(self) -> Sequence[Segment]:
        return [place.segment for place in _with_inner(self.places)]

    def with_segments(self, segments: Sequence[Segment]) -> bytes:
        pairs = zip(_with_inner(self.places), segments, strict=True)
        texts = [(place, self._written(place, pairs)) for place in self.places]
        next(pairs, None)  # raises a ValueError if there are too many segments
        data = self._spliced(0, len(self.content), texts).encode(self.encoding.removesuffix("-sig"), self.errors)
        return MARKS.get(self.encoding, b"") + data

    def _written(self, place: Place, pairs: Iterator[tuple[Place, Segment]]) -> str:
        """Return the new content of a place; the next pair is its own, and those of its inner places follow."""
        _, segment = next(pairs)
        texts = [self._written(inner.place, pairs) for inner in place.inner]
        if segment == place.segment and not place.is_target:
            inner_places = [inner.place for inner in place.inner]
            return self._spliced(place.begin, place.end, list(zip(inner_places, texts, strict=True)))
        return place.written(_with_inner_texts(segment, place, texts))

    def _spliced(self, begin: int, end: int, texts: Sequence[tuple[Place, str]]) -> str:
        """Return a part of the content with texts in the places in it."""
        parts, position = [], begin
        for place, text in texts:
            parts += [self.content[position : place.begin], text]
            position = place.end
        return "".join([*parts, self.content[position:end]])


def _with_inner(places: Sequence[Place]) -> Iterator[Place]:
    for place in places:
        yield place
        yield from _with_inner([inner.place for inner in place.inner])


def _with_inner_texts(segment: Segment, place: Place, texts: Sequence[str]) -> Segment:
    """Replace the texts in the markup of tags. The tags may be in another order than in the file."""
    if not place.inner:
        return segment
    forms = [tag.markup for tag in place.segment.tags]
    for inner, text in reversed(list(zip(place.inner, texts, strict=True))):
        form = forms[inner.tag]
        end = inner.position + inner.place.end - inner.place.begin
        forms[inner.tag] = form[: inner.position] + text + form[end:]
    queues: dict[str, list[str]] = {}
    for tag, form in zip(place.segment.tags, forms, strict=True):
        queues.setdefault(tag.markup, []).append(form)
    queues = {markup: forms[::-1] for markup, forms in queues.items()}
    tags = [tag._replace(markup=queues[tag.markup].pop()) if queues.get(tag.markup) else tag for tag in segment.tags]
    return Segment(segment.text, tuple(tags))


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
