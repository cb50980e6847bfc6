"""EPUB: the chapters, which are XHTML pages, in the order of reading, the table of contents, and the title."""

import posixpath
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import unquote

from heedful.documents.archive import Archive, ArchiveDocument
from heedful.documents.document import Document, Place, Segment
from heedful.documents.html import document, page_content
from heedful.documents.inline import EDGES
from heedful.documents.xml_tree import Element, Xml, escaped, parse, text_of
from heedful.errors import InputError

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
PREFIXES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "container",
    "http://www.idpf.org/2007/opf": "opf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.daisy.org/z3986/2005/ncx/": "ncx",
    "http://www.w3.org/2001/04/xmlenc#": "enc",
}
PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
CONTENTS = "application/x-dtbncx+xml"


def read(data: bytes, name: str) -> ArchiveDocument:
    """Find the texts of a book."""
    archive = Archive(data, name, "EPUB")
    container = parse(archive.read(CONTAINER), f"{name}/{CONTAINER}", PREFIXES)
    package_name = next(
        (file.attributes.get("full-path", "") for file in container.root.descendants("container:rootfile")), ""
    )
    package = parse(archive.read(package_name), f"{name}/{package_name}", PREFIXES)
    members = dict(_members(package.root, posixpath.dirname(package_name)))
    _check_encryption(archive, members)
    parts: dict[str, Document] = {}
    for member, kind in members.items():
        if member not in archive:
            continue
        if kind in PAGES:
            content, encoding = page_content(archive.read(member), f"{name}/{member}")
            parts[member] = document(content, encoding, is_xml=True)
        else:
            contents = parse(archive.read(member), f"{name}/{member}", PREFIXES)
            parts[member] = contents.document(_text_places(contents, list(contents.root.descendants("ncx:text"))))
    parts[package_name] = package.document(_text_places(package, list(package.root.descendants("dc:title"))))
    return ArchiveDocument(archive, parts)


def _members(package: Element, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the members with texts and their types: the pages in the order of reading, and then the other ones."""
    items = {item.attributes.get("id", ""): item.attributes for item in package.descendants("opf:item")}
    order = [item.attributes.get("idref", "") for item in package.descendants("opf:itemref")]
    kinds = (*PAGES, CONTENTS)
    for identifier in dict.fromkeys([*order, *items]):
        attributes = items.get(identifier, {})
        kind = attributes.get("media-type", "").strip().lower()
        if kind in kinds:
            yield posixpath.normpath(posixpath.join(folder, unquote(attributes.get("href", "")))), kind


def _text_places(xml: Xml, elements: Sequence[Element]) -> Iterator[Place]:
    """Yield the places of elements that have texts only."""
    for element in elements:
        source = xml.inner(element)
        stripped = source.strip(EDGES)
        text = text_of(stripped).strip(EDGES)
        if text and not element.children:
            begin = element.inner[0] + len(source) - len(source.lstrip(EDGES))
            yield Place(begin, begin + len(stripped), Segment(text), lambda segment: escaped(segment.text))


def _check_encryption(archive: Archive, members: Collection[str]) -> None:
    """Reject a book whose pages are encrypted; fonts may be."""
    if ENCRYPTION in archive:
        encryption = parse(archive.read(ENCRYPTION), f"{archive.name}/{ENCRYPTION}", PREFIXES)
        for reference in encryption.root.descendants("enc:CipherReference"):
            if unquote(reference.attributes.get("URI", "")) in members:
                raise InputError(f"{archive.name}: is encrypted (DRM); use an edition without copy protection")
