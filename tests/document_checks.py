"""Checks that hold for the reader of every format of documents; the translator is one that changes letters."""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO

from heedful.documents.archive import ArchiveDocument
from heedful.documents.document import Document, Segment, TextDocument

_ADDED = re.compile(
    "[\"']|</?w:r( [^>]*)?>|<w:rPr>.*?</w:rPr>|<w:t xml:space=.preserve.> +</w:t>|"
    "<text:span text:style-name=.T1.>|</text:span>"
)

Reader = Callable[[bytes, str], Document]


def respelled(segments: Sequence[Segment]) -> list[Segment]:
    """The segments with each word of ASCII letters backwards, and in the other case."""
    return [
        segment._replace(text=re.sub("[A-Za-z]+", lambda word: word[0][::-1].swapcase(), segment.text))
        for segment in segments
    ]


def shape(segment: Segment) -> tuple[str, list[tuple[int, str]]]:
    """A segment without the markup of its tags, in which there may be other texts."""
    return segment.text, [(tag.position, tag.kind) for tag in segment.tags]


def is_nested(segment: Segment) -> bool:
    """True if each pair of tags is complete."""
    depth = 0
    for tag in segment.tags:
        depth += (tag.kind == "open") - (tag.kind == "close")
        if depth < 0:
            return False
    return depth == 0


def gaps(document: TextDocument) -> list[str]:
    """What is between the places, without the quotes that an attribute may get, and without tags of runs and spans."""
    ends = [0, *(place.end for place in document.places)]
    begins = [*(place.begin for place in document.places), len(document.content)]
    return [_ADDED.sub("", document.content[end:begin]) for end, begin in zip(ends, begins, strict=True)]


def check_document(read: Reader, data: bytes, name: str) -> Document:
    """Read a file, write it with the same texts and with others, and read it again."""
    document = read(data, name)
    segments = list(document.segments)
    assert document.with_segments(segments) == data
    assert all(map(is_nested, segments))
    others = respelled(segments)
    again = read(document.with_segments(others), name)
    assert list(map(shape, again.segments)) == list(map(shape, others))
    for part, part_again in _parts(document, again):
        assert gaps(part_again) == gaps(part)
    return document


def _parts(document: Document, again: Document) -> Iterator[tuple[TextDocument, TextDocument]]:
    pairs = [(document, again)]
    if isinstance(document, ArchiveDocument) and isinstance(again, ArchiveDocument):
        pairs = [(part, again.parts[name]) for name, part in document.parts.items()]
    for part, part_again in pairs:
        assert isinstance(part, TextDocument)
        assert isinstance(part_again, TextDocument)
        yield part, part_again


def zipped(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive; the member `mimetype` is stored."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, (2020, 2, 29, 12, 30, 58))
            member.external_attr = 0o640 << 16
            member.compress_type = zipfile.ZIP_STORED if name == "mimetype" else compression
            archive.writestr(member, content)
        archive.comment = b"a comment"
    return stream.getvalue()


def check_members(before: bytes, after: bytes, parts: Sequence[str]) -> None:
    """Check that two archives differ only in the contents of some members."""
    with zipfile.ZipFile(BytesIO(before)) as old, zipfile.ZipFile(BytesIO(after)) as new:
        assert new.testzip() is None
        assert new.comment == old.comment
        for member, other in zip(old.infolist(), new.infolist(), strict=True):
            for attribute in ("filename", "date_time", "compress_type", "external_attr", "create_system", "extra"):
                assert getattr(member, attribute) == getattr(other, attribute)
            assert member.filename in parts or old.read(member) == new.read(other)
