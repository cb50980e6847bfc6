"""Office Open XML: text documents (.docx) and presentations (.pptx), paragraph by paragraph.

A paragraph consists of runs of text with the same format. The most frequent format of a paragraph is that of its text
without tags; a pair of tags is around a text in another format. Runs that differ only in their language, or in the
session in which they were written, have the same format.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from heedful.documents.archive import Archive, ArchiveDocument
from heedful.documents.document import Place, Segment, Tag
from heedful.documents.inline import Item, Sentence, places_of, without_break_blanks
from heedful.documents.xml_tree import Element, Xml, escaped, parse, text_of

_TRANSITIONAL, _STRICT = "http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml"
PREFIXES = {
    "http://schemas.openxmlformats.org/package/2006/content-types": "types",
    "http://www.w3.org/XML/1998/namespace": "xml",
    f"{_TRANSITIONAL}/wordprocessingml/2006/main": "w",
    f"{_STRICT}/wordprocessingml/main": "w",
    f"{_TRANSITIONAL}/drawingml/2006/main": "a",
    f"{_STRICT}/drawingml/main": "a",
    f"{_TRANSITIONAL}/officeDocument/2006/math": "m",
    f"{_STRICT}/officeDocument/math": "m",
}
CONTENT_TYPES = "[Content_Types].xml"
_MAIN = re.compile(r"(document|template)(\.macroEnabled|Template)*\.main\+xml$", re.IGNORECASE)
_PART = re.compile(rf"{_MAIN.pattern}|ml\.(header|footer|footnotes|endnotes|slide|notesSlide)\+xml$", re.IGNORECASE)

CONTAINERS = frozenset({"w:bdo", "w:customXml", "w:dir", "w:hyperlink", "w:ins", "w:moveTo", "w:sdt", "w:smartTag"})
WORDS = frozenset({"a:fld", "m:oMath", "m:oMathPara", "w:fldSimple"})
LINE_BREAKS = frozenset({"a:br", "w:br", "w:cr", "w:ptab", "w:tab"})
# What a program adds itself, which is left out of a paragraph that changes.
LEFT_OUT = frozenset({"w:lastRenderedPageBreak", "w:proofErr", "w:softHyphen"})
INSTRUCTION = "instruction "  # what the names of items with the instruction of a field begin with
CHARACTERS = {"w:noBreakHyphen": "\u2011"}

# Parts of a format that do not change how a text looks: its language, and marks of spelling.
_UNSEEN_ELEMENTS = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^<>]*?/>")
_UNSEEN_ATTRIBUTES = re.compile(r"\s(?:lang|altLang|dirty|err|noProof|smtClean|smtId)=(?:\"[^\"]*\"|'[^']*')")
_EMPTY_FORMAT = re.compile(r"<([\w:]+)\s*(?:/>|>\s*</\1>)")
_BLANK = re.compile("[\t\n\r\f\v]")
_LINK = re.compile(r"\s*HYPERLINK\b")


def read(data: bytes, name: str) -> ArchiveDocument:
    """Find the texts of a document."""
    archive = Archive(data, name, "DOCX or PPTX")
    types = parse(archive.read(CONTENT_TYPES), f"{name}/{CONTENT_TYPES}", PREFIXES)
    kinds = {
        part.attributes.get("PartName", "").lstrip("/"): part.attributes.get("ContentType", "")
        for part in types.root.descendants("types:Override")
    }
    members = [member for member in archive.members if _PART.search(kinds.get(member, ""))]
    members.sort(key=lambda member: (not _MAIN.search(kinds[member]), *_natural_order(member)))
    parts = {member: parse(archive.read(member), f"{name}/{member}", PREFIXES) for member in members}
    return ArchiveDocument(archive, {part: xml.document(_Reader(xml).places(xml.root)) for part, xml in parts.items()})


def _natural_order(name: str) -> tuple[str, int]:
    """Return a key that sorts slide10.xml after slide9.xml."""
    number = re.search(r"\d+", name)
    return re.sub(r"\d+", "", name), int(number[0]) if number else 0


class Cut(NamedTuple):
    """Position at which a run is divided into parts, or at which the whole run begins or ends.

    `outer` is the tag that the rest of the run needs there, and `inner` the tag that the part needs.
    """

    position: int
    outer: str = ""
    inner: str = ""


class Writing(NamedTuple):
    """Settings for writing the runs of a paragraph.

    Attributes:
        base: The format of text that is not between tags of a format.
        prefix: The prefix of the names of elements, such as "w:".
        line_breaks: The tags that separate words, as a space does.
        before: A tag before the runs.
        leading: The blanks at the beginning of the text.
        trailing: The blanks at the end of the text.
        after: A tag after the runs.
    """

    base: str
    prefix: str
    line_breaks: frozenset[str]
    before: str
    leading: str
    trailing: str
    after: str


class _Reader:
    """Reader of a part of a document.

    `begins` and `ends` have the cuts for each character at which a part of a run begins or ends.
    """

    def __init__(self, xml: Xml) -> None:
        self.xml = xml
        self.begins: dict[int, Cut] = {}
        self.ends: dict[int, Cut] = {}

    def places(self, element: Element) -> Iterator[Place]:
        """Yield the places in an element, in order."""
        for child in element.children:
            if child.name in ("w:p", "a:p"):
                prefix = self.xml.content[child.begin + 1 : child.begin + 20].partition("p")[0]
                items = self._with_fields(list(self._items(child, prefix)))
                base = _most_frequent_format(items)
                items = list(_with_format_tags(items, base, prefix))
                yield from places_of(items, partial(self._place, base, prefix))
            else:
                yield from self.places(child)

    def _items(self, element: Element, prefix: str) -> Iterator[Item]:
        """Yield the texts and tags of a paragraph or a part of it; the markup of a text is its format."""
        for child in element.children:
            if child.name in ("w:r", "a:r"):
                yield from self._run(child, prefix)
            elif child.name in CONTAINERS or (child.name == "w:fldSimple" and _is_link(child)):
                content = child.child("w:sdtContent") if child.name == "w:sdt" else child
                if content is None or content.inner[0] == content.end:
                    yield self._tag(child, "empty")
                    continue
                opening = self.xml.content[child.begin : content.inner[0]]
                closing = self.xml.content[content.inner[1] : child.end]
                yield Item("open", child.begin, content.inner[0], "", opening, child.name)
                yield from self._items(content, prefix)
                yield Item("close", content.inner[1], child.end, "", closing, child.name)
            elif child.name not in LEFT_OUT and child.name not in ("w:pPr", "a:pPr"):
                yield self._tag(child, "word" if child.name in WORDS else "empty")
                if child.name in LINE_BREAKS:
                    yield Item("text", child.end, child.end, " ")

    def _tag(self, element: Element, kind: str, opening: str = "", closing: str = "") -> Item:
        """Return an element that is one tag, between the tags of a run if it is a part of one."""
        places = self.places(element)
        inner = tuple((len(opening) + place.begin - element.begin, place) for place in places)
        markup = f"{opening}{self.xml.source(element)}{closing}"
        return Item("word" if kind == "word" else "empty", element.begin, element.end, "", markup, element.name, inner)

    def _run(self, run: Element, prefix: str) -> Iterator[Item]:
        parts = [child for child in run.children if child.name not in ("w:rPr", "a:rPr")]
        properties = run.child("w:rPr") or run.child("a:rPr")
        source = self.xml.source(properties) if properties else ""
        text_format = _seen(source)
        opening, whole_opening, closing = f"<{prefix}r>{text_format}", f"<{prefix}r>{source}", f"</{prefix}r>"
        for number, part in enumerate(parts):
            is_first, is_last = number == 0, number == len(parts) - 1
            self.begins[part.begin] = Cut(run.begin) if is_first else Cut(part.begin, closing, whole_opening)
            self.ends[part.end] = Cut(run.end) if is_last else Cut(part.end, whole_opening, closing)
            if part.name in ("w:t", "a:t") and not part.children:
                text = _BLANK.sub(" ", text_of(self.xml.inner(part)))
                is_exact = part.name == "a:t" or part.attributes.get("xml:space") == "preserve"
                text = text if is_exact else text.strip(" ")
                if text:
                    yield Item("text", part.begin, part.end, text, text_format)
            elif part.name in CHARACTERS:
                yield Item("text", part.begin, part.end, CHARACTERS[part.name], text_format)
            elif part.name not in LEFT_OUT:
                item = self._tag(part, "word" if part.name == "w:sym" else "empty", opening, closing)
                if part.name == "w:fldChar":
                    item = item._replace(name=part.attributes.get("w:fldCharType", ""))
                elif part.name == "w:instrText":
                    item = item._replace(name=INSTRUCTION + text_of(self.xml.inner(part)))
                yield item
                if part.name in LINE_BREAKS:  # which separate words
                    yield Item("text", part.end, part.end, " ", text_format)

    def _with_fields(self, items: list[Item]) -> list[Item]:
        """Make a word of each field, such as the number of a page, and a pair of tags of a field that is a link."""
        result: list[Item] = []
        position = 0
        while position < len(items):
            end = _field_end(items, position) if items[position].name == "begin" else position
            field = self._field(items[position : end + 1]) if end > position else None
            result += field or [items[position]]
            position = end + 1 if field else position + 1
        return result

    def _field(self, items: list[Item]) -> list[Item] | None:
        """Return the items of a field, or None if it crosses other markup."""
        kinds = Counter(item.kind for item in items)
        if kinds["open"] != kinds["close"]:
            return None
        first, last = items[0], items[-1]
        separator = next((number for number, item in enumerate(items) if item.name == "separate"), 0)
        if not any(_LINK.match(item.name.removeprefix(INSTRUCTION)) for item in items[:separator]):
            return [Item("word", first.begin, last.end, "", self._runs(first.begin, last.end))]
        opening = self._runs(first.begin, items[separator].end)
        return [
            Item("open", first.begin, items[separator].end, "", opening, "field"),
            *items[separator + 1 : -1],
            Item("close", last.begin, last.end, "", self._runs(last.begin, last.end), "field"),
        ]

    def _runs(self, begin: int, end: int) -> str:
        """Return a part of the file as whole runs."""
        first, last = self.begins[begin], self.ends[end]
        return f"{first.inner}{self.xml.content[first.position : last.position]}{last.inner}"

    def _place(self, base: str, prefix: str, items: Sequence[Item], sentence: Sentence) -> Place:
        begin = self.begins.get(items[0].begin, Cut(items[0].begin))
        end = self.ends.get(items[-1].end, Cut(items[-1].end))
        texts = [number for number, item in enumerate(items) if item.is_text]
        line_breaks = frozenset(item.markup for item in items if item.name in LINE_BREAKS)
        writing = Writing(
            base,
            prefix,
            line_breaks,
            begin.outer,
            "" if any(map(_is_added, items[: texts[0]])) else sentence.leading,
            "" if any(map(_is_added, items[texts[-1] :])) else sentence.trailing,
            end.outer,
        )
        return Place(begin.position, end.position, sentence.segment, partial(_written, writing), inner=sentence.inner)


def _is_link(field: Element) -> bool:
    return bool(_LINK.match(field.attributes.get("w:instr", "")))


def _field_end(items: Sequence[Item], begin: int) -> int:
    """Return the position of the item that ends the field that an item begins; `begin` if it is missing."""
    depth = 0
    for position in range(begin, len(items)):
        depth += (items[position].name == "begin") - (items[position].name == "end")
        if depth == 0:
            return position
    return begin


def _seen(source: str) -> str:
    """Return a format without what does not change how a text looks; it is empty if nothing remains."""
    tag_end = source.find(">") + 1
    source = _UNSEEN_ATTRIBUTES.sub("", source[:tag_end]) + _UNSEEN_ELEMENTS.sub("", source[tag_end:])
    return "" if _EMPTY_FORMAT.fullmatch(source) else source


def _most_frequent_format(items: Sequence[Item]) -> str:
    """Return the format of the most characters that are not blank; of formats with equally many, the first."""
    lengths = Counter[str]()
    for item in items:
        if item.is_text:
            lengths[item.markup] += len("".join(item.text.split()))
    return max(lengths, key=lengths.__getitem__, default="")


def _with_format_tags(items: Sequence[Item], base: str, prefix: str) -> Iterator[Item]:
    """Put a pair of tags around texts that are not in the most frequent format; that of blanks does not matter."""
    present, end = base, 0
    between: list[Item] = []  # tags and blanks after the last text
    for item in items:
        if item.kind in ("empty", "word", "object") or item.is_blank:
            between.append(item._replace(markup="") if item.is_blank else item)
            continue
        text_format = item.markup if item.kind == "text" else base
        if present not in (text_format, base):
            yield Item("close", end, end, "", f"</{prefix}r>", "run")
        yield from between
        between.clear()
        if text_format not in (present, base):
            yield Item("open", item.begin, item.begin, "", f"<{prefix}r>{text_format}", "run")
        present, end = text_format, item.end
        yield item._replace(markup="") if item.kind == "text" else item
    if present != base:
        yield Item("close", end, end, "", f"</{prefix}r>", "run")
    yield from between


def _is_added(item: Item) -> bool:
    """Return True for the blank of a line break, which is not in the file."""
    return item.kind == "text" and item.begin == item.end


def _written(writing: Writing, segment: Segment) -> str:
    """Return the runs of a text, with its tags between them."""
    prefix = writing.prefix
    opening, closing = f"<{prefix}r>", f"</{prefix}r>"
    text_tag = f"{prefix}t" if prefix == "a:" else f'{prefix}t xml:space="preserve"'
    formats = [writing.base]
    parts: list[str] = []

    def add_run(text: str) -> None:
        if text:
            parts.append(f"{opening}{formats[-1]}<{text_tag}>{escaped(text)}</{prefix}t>{closing}")

    segment = _with_breaks_before_blanks(_BLANK.sub(" ", segment.text), segment.tags, writing.line_breaks)
    segment = without_break_blanks(segment, writing.line_breaks)
    position = 0
    add_run(writing.leading)
    for tag in segment.tags:
        add_run(segment.text[position : tag.position])
        position = tag.position
        if tag.kind == "open" and tag.markup.startswith(opening) and closing not in tag.markup:
            formats.append(tag.markup.removeprefix(opening))
        elif tag.kind == "close" and tag.markup == closing:
            formats.pop()
        else:
            parts.append(tag.markup)
    add_run(segment.text[position:])
    add_run(writing.trailing)
    return "".join([writing.before, *parts, writing.after])


def _with_breaks_before_blanks(text: str, tags: Sequence[Tag], line_breaks: frozenset[str]) -> Segment:
    """Move line breaks that follow a blank before it, as it is there when the text is read."""
    moved = (
        tag._replace(position=tag.position - 1)
        if tag.markup in line_breaks and text[: tag.position].endswith(" ") and not text.startswith(" ", tag.position)
        else tag
        for tag in tags
    )
    return Segment(text, tuple(moved))
