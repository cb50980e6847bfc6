"""Archives that are damaged, encrypted or too large, and what is kept of the others."""

import zipfile
from contextlib import suppress
from io import BytesIO

import pytest

from damage import damaged
from document_checks import check_members, zipped
from heedful.documents import archive, epub, office, open_document
from heedful.documents.archive import Archive
from heedful.errors import InputError


@pytest.mark.parametrize("data", [b"", b"PK", b"\xd0\xcf\x11\xe0 an old or encrypted file", zipped({"a": "b"})[:-20]])
def test_what_is_not_an_archive_is_an_input_error(data: bytes) -> None:
    for read in (epub.read, office.read, open_document.read):
        with pytest.raises(InputError, match=r"a\.file: is not a "):
            read(data, "a.file")


def test_an_archive_without_its_parts_is_an_input_error() -> None:
    for read in (epub.read, office.read, open_document.read):
        with pytest.raises(InputError, match=r"a\.file: has no .* inside"):
            read(zipped({"a": "b"}), "a.file")


def test_an_archive_that_is_too_large_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({"a": bytes(100_000), "b": bytes(100_000)})
    monkeypatch.setattr(archive, "MAX_SIZE", 199_999)
    with pytest.raises(InputError, match="200,000 bytes"):
        Archive(data, "a", "EPUB")
    monkeypatch.setattr(archive, "MAX_SIZE", 200_000)
    monkeypatch.setattr(archive, "MAX_TEXT_SIZE", 99_999)
    with pytest.raises(InputError, match="100,000 bytes"):
        Archive(data, "a", "EPUB").read("a")
    monkeypatch.setattr(archive, "MAX_MEMBERS", 1)
    with pytest.raises(InputError, match="2 files"):
        Archive(data, "a", "EPUB")


def test_a_size_that_is_not_true_is_an_input_error() -> None:
    data = zipped({"a": bytes(1000)})
    lying = data.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(InputError, match="a/a: cannot be unpacked"):
        Archive(lying, "a", "EPUB").read("a")


def test_an_encrypted_member_is_an_input_error() -> None:
    data = bytearray(zipped({"a": "b"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError, match="encrypted"):
        Archive(bytes(data), "a", "EPUB")


def test_two_members_of_one_name_are_an_input_error() -> None:
    data = zipped({"a": "x", "b": "y"}).replace(b"b", b"a")
    with pytest.raises(InputError, match="two files of the same name"):
        Archive(data, "a", "EPUB")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_keep_their_compression_order_and_attributes(compression: int) -> None:
    data = zipped({"z/": "", "é": "1", "a": "2" * 100, "../b": "3"}, compression)
    new = Archive(data, "a", "EPUB").with_members({"a": b"4" * 50})
    check_members(data, new, ["a"])
    with zipfile.ZipFile(BytesIO(new)) as opened:
        assert opened.read("a") == b"4" * 50


def test_extra_fields_remain_except_for_sizes() -> None:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        member = zipfile.ZipInfo("a")
        member.extra = b"\x01\x00\x08\x00" + bytes(8) + b"UT\x05\x00\x01abcd"
        opened.writestr(member, "b")
    new = Archive(stream.getvalue(), "a", "EPUB").with_members({"a": b"c"})
    with zipfile.ZipFile(BytesIO(new)) as opened:
        assert opened.getinfo("a").extra == b"UT\x05\x00\x01abcd"


def test_damage_is_an_input_error_or_does_not_matter() -> None:
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/d.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    text = f'<w:document xmlns:w="{word}"><w:p><w:r><w:t>a</w:t></w:r></w:p></w:document>'
    for data in damaged(zipped({"[Content_Types].xml": types, "d.xml": text}), 150):
        with suppress(InputError):
            document = office.read(data, "a.docx")
            assert document.with_segments(document.segments) == data
