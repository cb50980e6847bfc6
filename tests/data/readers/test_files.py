import bz2
import gzip
import lzma
import os
import tracemalloc
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.readers import files
from heedful.data.readers.files import count_lines, decode_lines, read_lines
from heedful.errors import InputError

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def write(tmp_path):
    def write(content: bytes, name: str = "text.en") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\ntwo", ["one", "two"]),
        (b"\n\n", ["", ""]),
        (b"one\n\nthree\n", ["one", "", "three"]),
        (b"  one \t\n", ["  one \t"]),
        (b"one\r\ntwo\nthree\r\n", ["one", "two", "three"]),
        (b"one\r\r\ntwo\r", ["one\r", "two"]),
        (b"o\rne\ntwo", ["o\rne", "two"]),
        (BOM, []),
        (BOM + b"one\ntwo\n", ["one", "two"]),
        (BOM + BOM + b"one\n", ["one"]),
        (b"one\n" + BOM + b"two\n", ["one", "two"]),
        (b"one\n" + BOM, ["one"]),
        (b"one\n" + BOM + b"\n", ["one", ""]),
        (b"o" + BOM + b"ne\n", ["o\ufeffne"]),
        (b"nul\0inside\n\0\n", ["nul\0inside", "\0"]),
        (
            "1\u20282\u20293\u00854\x0b5\x0c6\x1c7\x1d8\x1e9\n".encode(),
            ["1\u20282\u20293\u00854\x0b5\x0c6\x1c7\x1d8\x1e9"],
        ),
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("named", [False, True], ids=["recognised", "named"])
def test_lines_end_at_line_feeds_only(write, content, lines, compress, named):
    endings = {gzip.compress: ".gz", bz2.compress: ".bz2", lzma.compress: ".xz"}
    path = write(compress(content), f"text.en{endings.get(compress, '') if named else ''}")
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7])
def test_lines_are_counted_wherever_a_block_ends(write, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK", block)
    for content in (b"one\ntwo", b"one\r\ntwo\n", b"one\n" + BOM, b"\n\n" + BOM + "zwölf".encode(), b"\xff\n\xff"):
        path = write(content)
        assert count_lines(path) == len(list(read_lines(path, bad_utf8="replace")))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\ufeff"))))
def test_what_was_written_line_by_line_is_read_line_by_line(lines):
    stream = BytesIO("".join(line + "\r\n" for line in lines).encode())
    assert list(decode_lines(stream, "text", bad_utf8="error")) == lines


@given(st.binary())
def test_any_bytes_keep_their_line_count_or_are_refused(content):
    after_the_last_line_feed = content.rpartition(b"\n")[2].replace(BOM, b"")
    expected = content.count(b"\n") + (1 if after_the_last_line_feed else 0)
    foreign = content.startswith(tuple(files.FOREIGN_BEGINNINGS))
    for policy in ("replace", "skip"):
        with pytest.raises(InputError, match="not UTF-8 text but") if foreign else nullcontext():
            assert len(list(decode_lines(BytesIO(content), "text", bad_utf8=policy))) == expected


def test_bad_utf8_is_named_with_file_line_byte_and_remedy(write):
    path = write(b"fine\nna\xefve\n")
    with pytest.raises(InputError, match=r"text\.en, line 2, byte 3: 0xEF .*iconv.*data\.bad_utf8"):
        list(read_lines(path, bad_utf8="error"))


def test_bad_utf8_outside_of_recipes_is_not_explained_by_a_setting(write):
    with pytest.raises(InputError, match=r"0xEF is not valid UTF-8; convert the file, [^.]*$"):
        list(read_lines(write(b"fine\nna\xefve\n")))


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"caf\xe9 au lait", b"\x80"]
)
def test_bad_utf8_is_skipped_or_replaced_on_demand(write, bad):
    path = write(b"one\n" + bad + b"\r\nthree\n")
    with pytest.raises(InputError, match=r"line 2[,:] (byte|contains a lone surrogate)"):
        list(read_lines(path))
    assert list(read_lines(path, bad_utf8="skip")) == ["one", "three"]
    first, replaced, last = read_lines(path, bad_utf8="replace")
    assert (first, last) == ("one", "three")
    assert "\ufffd" in replaced
    assert not replaced.endswith("\r")
    with path.open("rb") as stream:
        assert list(decode_lines(stream, "text", bad_utf8="skip")) == ["one", None, "three"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("héllo\n".encode("utf-16"), "UTF-16"),
        (b"\xfe\xff\0h\0\n", "UTF-16"),
        (b"%PDF-1.4\n", "a PDF; extract its text"),
        (b"\x28\xb5\x2f\xfd\x04", "Zstandard"),
        (b"\xd0\xcf\x11\xe0\xa1", "Word or Excel"),
        (b"{\\rtf1\\ansi", "RTF"),
        (b"PAR1\x15", "Parquet"),
        (b"RIFF\x24\x08\0\0WAVEfmt ", "an audio file or a video; give a folder"),
        (b"RIFF\x24\x08\0\0AVI LIST", "an audio file or a video"),
        (b"\0\0\0\x1cftypM4A ", "an audio file or a video"),
        (b"\0\0\0\x14ftypqt  ", "an audio file or a video"),
        (b"\x1a\x45\xdf\xa3\x9f", "an audio file or a video"),
        (b"ID3\x04\0", "an audio file or a video"),
        (b"fLaC\0\0", "an audio file or a video"),
        (b"OggS\0\x02", "an audio file or a video"),
        (b"\x89PNG\r\n", "an image"),
        (b"PK\x03\x04rest", "zip"),
    ],
)
@pytest.mark.parametrize("policy", ["error", "skip", "replace"])
def test_other_formats_are_recognised(write, content, what, policy):
    with pytest.raises(InputError, match=what):
        list(read_lines(write(content), bad_utf8=policy))


def test_files_that_cannot_be_read_are_named(tmp_path, write):
    whole = gzip.compress(os.urandom(5003))
    broken = {
        tmp_path / "missing.en": "no such file",
        tmp_path: "is a folder",
        **{write(b"plain text\n", f"plain.en{ending}"): f"not a valid {ending}" for ending in (".gz", ".bz2", ".xz")},
        write(bz2.compress(os.urandom(5003))[:-11], "short.en.bz2"): "is truncated",
        write(lzma.compress(os.urandom(5003))[:-11], "short.en.xz"): "is truncated",
        write(whole[:-11], "short.en.gz"): "is truncated",
        write(
            whole[:1009] + bytes([whole[1009] ^ 255]) + whole[1010:], "flipped.en.gz"
        ): "not a valid .* file|not valid UTF-8",
        write(whole + b"garbage", "long.en.gz"): "not a valid .* file|not valid UTF-8",
        write(b"file", "file") / "below.en": "no such file; .* is a file, not a folder",
        Path("nul\0.en"): "not a file name",
    }
    for path, problem in broken.items():
        with pytest.raises(InputError, match=problem) as caught:
            list(read_lines(path, bad_utf8="replace"))
        assert path.name.strip("\0") in str(caught.value) or "\\x00" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_no_flipped_byte_of_a_compressed_file_changes_its_text(write):
    lines = [f"line {number} of some text that can be compressed" for number in range(23)]
    whole = gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0)
    refused = 0
    for place in range(len(whole)):
        path = write(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :], "flipped.en.gz")
        try:
            assert list(read_lines(path)) == lines  # nothing depends on, for example, the date in the header
        except InputError:
            refused += 1
    assert refused > 0.9 * len(whole)


def test_a_file_without_permission_is_named(write, monkeypatch):
    path = write(b"secret\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="no permission"):
        list(read_lines(path))


@pytest.mark.parametrize(
    "unit", ["a", "^", " ", "\t", "é", "字", "👩‍👩‍👧", "a\u0301\u0302", "א", "\u2028", "\0", "\ufeff"]
)
def test_a_line_of_a_million_characters_is_one_line(write, unit):
    line = "x" + (unit * 1_000_000)[:1_000_000]
    path = write(f"before\n{line}\nafter\n".encode())
    assert list(read_lines(path)) == ["before", line, "after"]


def test_a_file_without_lines_is_refused_before_it_fills_the_memory(write, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1013)
    with pytest.raises(InputError, match="line 2: longer than 1,013 bytes"):
        list(read_lines(write(b"short\n" + b"x" * 2003)))
    assert list(read_lines(write(b"x" * 1012 + b"\n"))) == ["x" * 1012]


def test_memory_does_not_grow_with_lines(write):
    path = write(b"a short line\n" * 70_001)
    lines = read_lines(path)
    tracemalloc.start()
    try:
        assert sum(map(len, lines)) == 12 * 70_001
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_unfinished_reading_closes_its_file(write):
    lines = read_lines(write(b"one\ntwo\n"))
    assert next(lines) == "one"
    del lines  # a file left open would be a ResourceWarning, and warnings are errors


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_line_ends_of_old_macs_are_refused_by_name(write, compress):
    lines = b"one fish\rtwo fish\rred fish\r"
    for content in (lines, lines.removesuffix(b"\r"), lines.replace(b" ", b"\t")):
        with pytest.raises(InputError, match=r"text\.en: its lines end in carriage returns only.*line feeds; convert"):
            list(read_lines(write(compress(content))))
    assert list(read_lines(write(compress(b"one\rfish")))) == ["one\rfish"]
    assert list(read_lines(write(compress(b"one\rtwo\rfish\nred")))) == ["one\rtwo\rfish", "red"]
    assert list(read_lines(write(compress(b"one\r\ntwo\r\nred")))) == ["one", "two", "red"]


def test_half_a_character_is_called_so_and_not_another_encoding(write):
    with pytest.raises(InputError, match=r"line 2: contains a lone surrogate \(U\+D83D\).*bad_utf8") as caught:
        list(read_lines(write(b"one\ntwo \xed\xa0\xbd\n"), bad_utf8="error"))
    assert "iconv" not in str(caught.value)
