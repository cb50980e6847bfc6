"""EPUB: the texts of a book, and the book with other texts."""

import zipfile
from io import BytesIO

import pytest

from document_checks import check_document, check_members, zipped
from heedful.documents.document import Segment
from heedful.documents.epub import read
from heedful.errors import InputError

CONTAINER = """<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A &amp; B</dc:title>
<dc:language>en</dc:language></metadata>
<manifest><item id="two" href="b%20c.xhtml" media-type="application/xhtml+xml"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/><item id="css" href="a.css" media-type="text/css"/>
<item id="one" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="gone" href="gone.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine toc="ncx"><itemref idref="one"/><itemref idref="two"/></spine></package>"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>\r
<!DOCTYPE html>\r
<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><body><p>{}</p></body></html>"""
CONTENTS = """<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://x/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><docTitle><text> Contents </text></docTitle></ncx>"""


def book(**members: str) -> bytes:
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/book.opf": PACKAGE,
            "OEBPS/b c.xhtml": PAGE.format("Second <i>page</i>."),
            "OEBPS/text/a.xhtml": PAGE.format("First<br/>page."),
            "OEBPS/toc.ncx": CONTENTS,
            "OEBPS/a.css": "p {}",
            **members,
        }
    )


def test_a_book_is_read_in_its_order() -> None:
    document = check_document(read, book(), "a.epub")
    assert [segment.text for segment in document.segments] == ["First page.", "Second page.", "Contents", "A & B"]


def test_the_rest_of_the_archive_remains() -> None:
    data = book()
    document = read(data, "a.epub")
    new = document.with_segments([Segment("Erste < Seite"), *document.segments[1:]])
    check_members(data, new, ["OEBPS/text/a.xhtml"])
    with zipfile.ZipFile(BytesIO(new)) as archive:
        assert archive.infolist()[0].filename == "mimetype"
        assert new[30:58] == b"mimetypeapplication/epub+zip"
        assert archive.read("OEBPS/text/a.xhtml").decode() == PAGE.format("Erste &lt; Seite")


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"META-INF/container.xml": "<container/>"}, "has no  inside"),
        ({"META-INF/container.xml": "<container>"}, "container.xml:1: is not well-formed XML"),
        ({"OEBPS/toc.ncx": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}, "defines entities"),
        ({"OEBPS/text/a.xhtml": '<meta charset="x"/>'}, "text/a.xhtml: its encoding"),
        (
            {
                "META-INF/encryption.xml": '<e xmlns:n="http://www.w3.org/2001/04/xmlenc#">'
                '<n:CipherReference URI="OEBPS/text/a.xhtml"/></e>'
            },
            "encrypted",
        ),
    ],
)
def test_a_damaged_or_encrypted_book_is_an_input_error(members: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(book(**members), "a.epub")
