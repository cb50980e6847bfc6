"""OpenDocument: text documents (.odt) and presentations (.odp), paragraph by paragraph, with notes and text boxes."""

from collections.abc import Iterator, Sequence
from functools import partial

from heedful.documents.archive import Archive, ArchiveDocument
from heedful.documents.document import Place, Segment, with_tags
from heedful.documents.inline import BLANKS, Item, Sentence, collapsed, places_of, without_break_blanks
from heedful.documents.xml_tree import Element, Xml, escaped, parse, text_of
from heedful.errors import InputError

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
PREFIXES = {
    **{f"{_NAMESPACE}{name}:1.0": name for name in ("office", "text", "style", "presentation", "manifest")},
    f"{_NAMESPACE}drawing:1.0": "draw",
    f"{_NAMESPACE}svg-compatible:1.0": "svg",
}
MANIFEST = "META-INF/manifest.xml"
PARTS = ("content.xml", "styles.xml")  # styles.xml has the headers and footers

PARAGRAPHS = frozenset({"text:p", "text:h"})
DESCRIPTIONS = frozenset({"svg:title", "svg:desc"})
CONTAINERS = frozenset({"text:a", "text:meta", "text:ruby", "text:ruby-base", "text:span"})
LINE_BREAKS = frozenset({"text:line-break", "text:tab"})
# Comments, deleted text, and what a program writes itself: templates of indexes and the results of fields.
SKIPPED = frozenset({"office:annotation", "office:forms", "text:ruby-text", "text:tracked-changes"})


def read(data: bytes, name: str) -> ArchiveDocument:
    """Find the texts of a document."""
    archive = Archive(data, name, "OpenDocument")
    if MANIFEST in archive:
        manifest = parse(archive.read(MANIFEST), f"{name}/{MANIFEST}", PREFIXES)
        if next(manifest.root.descendants("manifest:encryption-data"), None):
            raise InputError(f"{name}: is encrypted; save the document without a password")
    names = [part for part in PARTS if part == PARTS[0] or part in archive]
    parts = {part: parse(archive.read(part), f"{name}/{part}", PREFIXES) for part in names}
    return ArchiveDocument(archive, {part: xml.document(_Reader(xml).places(xml.root)) for part, xml in parts.items()})


class _Reader:
    """Reader of a part of a document."""

    def __init__(self, xml: Xml) -> None:
        self.xml = xml
        self.plain_styles = frozenset(_plain_styles(xml.root))

    def places(self, element: Element) -> Iterator[Place]:
        """Yield the places in an element, in order."""
        for child in element.children:
            if child.name in PARAGRAPHS:
                plain_spans: list[Element] = []
                items = collapsed(list(self._items(child, plain_spans)))
                yield from places_of(items, partial(self._place, plain_spans))
            elif child.name in DESCRIPTIONS:
                items = [Item("text", *child.inner, text_of(self.xml.inner(child)))] if not child.children else []
                yield from places_of(collapsed(items), partial(self._place, ()))
            elif child.name not in SKIPPED:
                yield from self.places(child)

    def _items(self, element: Element, plain_spans: list[Element]) -> Iterator[Item]:
        """Yield the texts and tags in a paragraph or a span, and collect the spans that are not tags."""
        position = element.inner[0]
        for child in element.children:
            yield self._text(position, child.begin)
            if child.name in CONTAINERS and child.inner[0] < child.end:
                yield from self._container(child, plain_spans)
            elif child.name == "text:s":
                yield Item("text", child.begin, child.end, " ")
            else:
                yield self._tag(child)
                if child.name in LINE_BREAKS:  # which separate words
                    yield Item("text", child.end, child.end, " ")
            position = child.end
        yield self._text(position, element.inner[1])

    def _text(self, begin: int, end: int) -> Item:
        return Item("text", begin, end, text_of(self.xml.content[begin:end]))

    def _container(self, element: Element, plain_spans: list[Element]) -> Iterator[Item]:
        if element.name == "text:span" and element.attributes.get("text:style-name") in self.plain_styles:
            plain_spans.append(element)
            yield from self._items(element, plain_spans)
            return
        opening, closing = self._tags(element)
        yield Item("open", element.begin, element.inner[0], "", opening, element.name)
        yield from self._items(element, plain_spans)
        yield Item("close", element.inner[1], element.end, "", closing, element.name)

    def _tags(self, element: Element) -> tuple[str, str]:
        content = self.xml.content
        return content[element.begin : element.inner[0]], content[element.inner[1] : element.end]

    def _tag(self, element: Element) -> Item:
        """Return an element that is one tag: a field is a word, and a note or a frame may have texts in it."""
        inner = tuple((place.begin - element.begin, place) for place in self.places(element))
        is_skipped = element.name in SKIPPED
        has_text = not element.children and element.inner[0] < element.inner[1]
        kind = "object" if element.name.startswith("draw:") else "word" if has_text and not is_skipped else "empty"
        source = self.xml.source(element)
        return Item(kind, element.begin, element.end, "", source, element.name, () if is_skipped else inner)

    def _place(self, plain_spans: Sequence[Element], items: Sequence[Item], sentence: Sentence) -> Place:
        begin, end = items[0].begin, items[-1].end
        if items[0].kind == "text":
            source = self.xml.content[begin : items[0].end]
            begin += len(source) - len(source.lstrip(BLANKS))
        if items[-1].kind == "text":
            source = self.xml.content[items[-1].begin : end]
            end -= len(source) - len(source.rstrip(BLANKS))
        # Spans that are not tags end before the place, or begin again after it, if they are partly in it.
        before = [self._tags(span)[1] for span in plain_spans if span.inner[0] <= begin < span.inner[1] < end]
        after = [self._tags(span)[0] for span in plain_spans if begin < span.inner[0] < end <= span.inner[1]]
        line_breaks = frozenset(item.markup for item in items if item.name in LINE_BREAKS)
        written = partial(_written, "".join(before[::-1]), "".join(after), line_breaks)
        return Place(begin, end, sentence.segment, written, inner=sentence.inner)


def _written(before: str, after: str, line_breaks: frozenset[str], segment: Segment) -> str:
    return f"{before}{with_tags(without_break_blanks(segment, line_breaks), escaped)}{after}"


def _plain_styles(root: Element) -> Iterator[str]:
    """Yield the styles of text that look like no style: they record in which session a text was written."""
    for style in root.descendants("style:style"):
        properties = style.children[0] if len(style.children) == 1 else None
        if style.attributes.get("style:family") == "text" and not style.attributes.get("style:parent-style-name"):
            attributes = properties.attributes if properties else {}
            is_plain = all(name.endswith("rsid") for name in attributes) and len(style.children) <= 1
            if is_plain and not (properties and properties.children):
                yield style.attributes.get("style:name", "")
