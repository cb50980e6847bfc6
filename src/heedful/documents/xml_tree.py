"""XML: a tree of the elements of a file with their places, and the texts in it."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.parsers import expat

from heedful.documents.document import TextDocument
from heedful.documents.html import page_content
from heedful.documents.inline import printable
from heedful.errors import InputError

MAX_DEPTH = 250  # of elements; office programs write less than 100
ERRORS = "xmlcharrefreplace"  # how a character is written that the encoding of a file does not have

_TAG = re.compile(r"""<[^"'>]*+(?:"[^"]*"[^"'>]*+|'[^']*'[^"'>]*+)*+>""")
_REFERENCE = re.compile(r"<!\[CDATA\[(.*?)\]\]>|&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(amp|lt|gt|quot|apos));", re.DOTALL)
_NAMES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


class Element(NamedTuple):
    """Element, comment or processing instruction of a file. Names and attributes have the prefixes of `parse`.

    Attributes:
        name: Such as "w:p".
        attributes: The values, without escapes.
        begin: The first character of the start tag.
        inner: The range of characters between the tags, which is empty in an empty element.
        end: The character after the end tag.
        children: The elements in the element.
    """

    name: str
    attributes: Mapping[str, str]
    begin: int
    inner: tuple[int, int]
    end: int
    children: "list[Element]"

    def descendants(self, name: str) -> "Iterator[Element]":
        """Yield the elements with a name at any depth, in order."""
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.descendants(name)

    def child(self, name: str) -> "Element | None":
        return next((child for child in self.children if child.name == name), None)


class Xml(NamedTuple):
    """XML file: its characters, their encoding, and its elements."""

    content: str
    encoding: str
    root: Element

    def source(self, element: Element) -> str:
        return self.content[element.begin : element.end]

    def inner(self, element: Element) -> str:
        return self.content[slice(*element.inner)]

    def document(self, places: Iterator) -> TextDocument:
        return TextDocument(self.content, self.encoding, list(places), ERRORS)


def parse(data: bytes, name: str, prefixes: Mapping[str, str]) -> Xml:
    """Parse an XML file.

    Args:
        data: The content of the file.
        name: The name of the file for messages.
        prefixes: The prefix for the names of each namespace; in other namespaces, it is the namespace itself.
    """
    content, encoding = page_content(data, name)
    builder = _Builder(content, name, prefixes)
    try:
        builder.parser.Parse(content.encode(), True)
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: is not {encoding.upper()} text; convert the file to UTF-8") from error
    except expat.ExpatError as error:
        raise InputError(f"{name}:{error.lineno}: is not well-formed XML ({error}); save the document again") from error
    return Xml(content, encoding, builder.stack[0].children[0])


def text_of(source: str) -> str:
    """Return the text of a part of a file that has no tags."""
    text = _REFERENCE.sub(_decoded, source.replace("\r\n", "\n"))
    return printable(text, "")


def escaped(text: str) -> str:
    """Return a text with escapes."""
    return re.sub("[&<>\r]", lambda match: _ESCAPES[match[0]], printable(text))


def _decoded(match: re.Match[str]) -> str:
    if match[2] or match[3]:
        return chr(int(match[2], 16) if match[2] else int(match[3]))
    return _NAMES[match[4]] if match[4] else match[1]


class _Builder:
    """Builder of the tree of a file. The parser reports places in bytes, which become places of characters."""

    def __init__(self, content: str, name: str, prefixes: Mapping[str, str]) -> None:
        self.content = content
        self.data = content.encode(errors="replace")
        self.name = name
        self.prefixes = prefixes
        self.byte = self.character = 0  # the last place that was reported
        self.stack = [Element("", {}, 0, (0, 0), 0, [])]
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CommentHandler = lambda _: self._single("comment", "-->")
        self.parser.ProcessingInstructionHandler = lambda *_: self._single("instruction", "?>")
        self.parser.StartDoctypeDeclHandler = self._document_type

    def _place(self) -> int:
        byte = self.parser.CurrentByteIndex
        self.character += len(self.data[self.byte : byte].decode())
        self.byte = byte
        return self.character

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.stack) > MAX_DEPTH:
            raise InputError(f"{self.name}: has elements nested more than {MAX_DEPTH} deep; save the document again")
        begin = self._place()
        tag = _TAG.match(self.content, begin)
        end = tag.end() if tag else begin
        values = {self._short(key): value for key, value in attributes.items()}
        self.stack.append(Element(self._short(name), values, begin, (end, end), end, []))

    def _end(self, _: str) -> None:
        element = self.stack.pop()
        if not self.content.endswith("/>", element.begin, element.inner[0]):
            place = self._place()
            end = self.content.index(">", place) + 1
            element = element._replace(inner=(element.inner[0], place), end=end)
        self.stack[-1].children.append(element)

    def _single(self, name: str, mark: str) -> None:
        begin = self._place()
        end = self.content.index(mark, begin) + len(mark)
        if len(self.stack) > 1:
            self.stack[-1].children.append(Element(name, {}, begin, (end, end), end, []))

    def _document_type(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:  # which may define entities that expand without limit
            raise InputError(f"{self.name}: defines entities in a DOCTYPE, which heedful does not read; remove them")

    def _short(self, name: str) -> str:
        namespace, _, local = name.rpartition(" ")
        return f"{self.prefixes.get(namespace, namespace)}:{local}" if namespace else local
