"""Files of word vectors, read and written: word2vec's text and binary formats, GloVe's text, and fastText's .vec."""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from gzip import GzipFile
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from heedful.data.readers.files import ByteStream, open_bytes
from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file
from heedful.wording import counted

LARGEST = 100_000  # numbers of a vector
LONGEST_LINE = 1 << 22  # bytes of a word and its vector, as text or as numbers

Entry = tuple[int, str, np.ndarray]  # line or number of the entry, from 1; a word; its vector, float32


@dataclass(frozen=True)
class VectorTable:
    """Word vectors in memory: row i of `matrix`, float32 of shape (n, d), belongs to `words[i]`."""

    words: list[str]
    matrix: np.ndarray


def read_vectors(path: Path, words: Container[str] | None = None) -> VectorTable:
    """Read word vectors, of `words` or all, from a file that may end in .gz. Other words take no memory."""
    kept: dict[str, np.ndarray] = {}
    with open_bytes(path) as stream:
        for _, word, vector in entries(stream, path):
            if (words is None or word in words) and word not in kept:
                kept[word] = vector
    if not kept:
        raise InputError(f"{path}: holds no vector for any of the words looked for; is it a file of word vectors?")
    return VectorTable(list(kept), np.stack(list(kept.values())))


def vector_size(path: Path) -> int:
    """The size of the first word vector of a file; the rest of the file is not read."""
    with open_bytes(path) as stream:
        for _, _, vector in entries(stream, path):
            return len(vector)
    raise InputError(f"{path}: holds no vector; is it a file of word vectors?")


def match(vectors: VectorTable, pieces: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Find the pieces that have a word vector: the vectors, float32 (m, d), and places of the pieces, int64 (m,)."""
    row_of = {word: row for row, word in enumerate(vectors.words)}
    found = [(row_of[piece], place) for place, piece in enumerate(pieces) if piece in row_of]
    rows, places = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return vectors.matrix[rows], places


def entries(stream: ByteStream, path: Path) -> Iterator[Entry]:
    """Yield each entry of a file of word vectors, in any format: its line or number, its word and its vector."""
    first = next(lines(stream, path), b"").removeprefix(BOM_UTF8)
    if not first:
        raise InputError(f"{path}: is empty; name a file of word vectors")
    header = re.fullmatch(rb"(\d{1,18})[ \t](\d{1,18})\s*", first)
    if header is None:
        return checked(text_entries(chain([first], lines(stream, path)), path, 1), path)
    count, size = map(int, header.groups())
    if size > LARGEST:
        raise InputError(f"{path}, line 1: promises vectors of {size:,} numbers; is it a file of word vectors?")
    second = stream.readline(LONGEST_LINE)
    if is_text(second) or is_row(second, size):
        return checked(
            as_promised(text_entries(chain([second], lines(stream, path)), path, 2, size), count, path), path
        )
    return checked(binary_entries(stream, second, count, size, path), path)


def lines(stream: ByteStream, path: Path) -> Iterator[bytes]:
    """Yield the remaining lines of a byte stream, and raise an error for one that is too long to be a vector."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}: a line has more than {LONGEST_LINE:,} bytes; is it a file of word vectors?")
        yield line


def is_text(line: bytes) -> bool:
    """True if a line of bytes could be text: float32 numbers hold control characters, or bytes that are no UTF-8."""
    try:
        return re.search(r"[\x00-\x08\x0e-\x1f]", line.decode("utf-8")) is None
    except UnicodeDecodeError:
        return False


def is_row(line: bytes, size: int) -> bool:
    """True if a line of bytes is a word and `size` numbers as text, in whatever encoding the word is."""
    fields = line.split()
    return len(fields) > size and all(map(is_number, fields[-size:]))


def text_entries(rows: Iterable[bytes], path: Path, first: int, size: int | None = None) -> Iterator[Entry]:
    """Yield word vectors from lines of text, each a word and its numbers.

    The header or the first line tells how many numbers, because a word may hold spaces. Blank lines are left out.
    """
    for number, row in enumerate(rows, start=first):
        fields = row.split()
        if not fields and number > first:
            continue
        size = len(fields) - 1 if size is None else size
        word = fields[:-size] if size > 0 else []
        if not word or (len(word) > 1 and is_number(word[-1])):
            found = counted(max(len(fields) - 1, 0), "numbers")
            promise = "the first line promises" if first > 1 else "the first vector has"
            remedy = "check the file"
            if len(word) > 1:  # a word with a space whose last part is a number, or a number too many
                name = b"_".join(word).decode("utf-8", errors="replace")
                remedy += f', or write its word as "{name}" if it has a space in it'
            raise InputError(f"{path}, line {number}: {found} where {promise} {max(size, 0)}; {remedy}")
        try:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, which `checked` refuses
                vector = np.array(fields[-size:], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not a word and {size} numbers ({error})") from error
        yield number, b" ".join(word).decode("utf-8", errors="replace"), vector


def is_number(field: bytes) -> bool:
    """True if a field of a line is a finite number, and so one number too many where a word is expected."""
    try:
        return bool(np.isfinite(float(field)))
    except ValueError:
        return False


def as_promised(found: Iterable[Entry], count: int, path: Path) -> Iterator[Entry]:
    """Yield word vectors unchanged, and raise an error at the end unless they are as many as the header promises."""
    number = 0
    for entry in found:
        number += 1
        yield entry
    if number != count:
        held = counted(number, "vectors")
        raise InputError(f"{path}: holds {held} where its first line promises {count}; download it again")


def binary_entries(stream: ByteStream, begin: bytes, count: int, size: int, path: Path) -> Iterator[Entry]:
    """Yield word vectors from word2vec's binary format: a word, a space and little-endian float32 numbers.

    There may be a line end before the next word.
    """
    buffer = begin
    for number in range(1, count + 1):
        while (space := buffer.find(b" ")) < 0 or len(buffer) < space + 1 + 4 * size:
            more = stream.read(1 << 20) if len(buffer) <= LONGEST_LINE else b""
            if not more:
                raise InputError(f"{path}: ends in vector {number} of {count}; copy or download it again")
            buffer += more
        end = space + 1 + 4 * size
        vector = np.frombuffer(buffer[space + 1 : end], dtype="<f4").astype(np.float32)
        yield number, buffer[:space].lstrip(b"\n").decode("utf-8", errors="replace"), vector
        buffer = buffer[end:]


def checked(found: Iterable[Entry], path: Path) -> Iterator[Entry]:
    """Yield word vectors unchanged, and raise an error for one with numbers that are not finite."""
    for number, word, vector in found:
        if not np.isfinite(vector).all():
            raise InputError(f'{path}: the vector of "{word}", number {number}, has numbers that are not finite')
        yield number, word, vector


CUTS = re.compile(r"[ \t\n\r\v\f]")
AT_ONCE = 1 << 10  # vectors formatted at a time


def write_vectors(path: Path, table: VectorTable, form: str) -> None:
    """Write word vectors to a file, which appears as a whole or not at all; text keeps all digits of float32.

    A file whose name ends in .gz is compressed.
    """
    if form not in FORMATS:
        raise InputError(f'there is no format "{form}" of word vectors; choose one of {", ".join(FORMATS)}')
    if unfit := next((word for word in table.words if not is_writable(word)), None):
        raise InputError(f"the word {unfit!r} holds a space, at which files of word vectors are cut; leave it out")
    try:
        with atomic_file(path) as file, compressing(file) if path.suffix == ".gz" else nullcontext(file) as out:
            for part in FORMATS[form](table):
                out.write(part)
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror or error}; make room for it or name another file"
        ) from error


def compressing(file: BinaryIO) -> GzipFile:
    """Compress what is written to a file; the same bytes come out each time."""
    return GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def is_writable(word: str) -> bool:
    """True if a word holds none of the characters at which files of word vectors are cut; other spaces stay whole."""
    return CUTS.search(word) is None and word != ""


def writable(table: VectorTable) -> VectorTable:
    """Return the vectors of the words that can be written to a file."""
    rows = [row for row, word in enumerate(table.words) if is_writable(word)]
    return VectorTable([table.words[row] for row in rows], table.matrix[rows])


def header(table: VectorTable) -> bytes:
    """The first line of word2vec's and fastText's formats: the number and the size of the vectors."""
    return f"{len(table.words)} {table.matrix.shape[1]}\n".encode()


def glove(table: VectorTable) -> Iterator[bytes]:
    """Yield blocks of lines in GloVe's format, a line a word: the word and its numbers, apart by spaces; no header."""
    for begin in range(0, len(table.words), AT_ONCE):
        rows = zip(table.words[begin : begin + AT_ONCE], table.matrix[begin : begin + AT_ONCE], strict=True)
        lines = (f"{word} {' '.join(map(str, row.astype(np.float32)))}\n" for word, row in rows)
        yield "".join(lines).encode()


def word2vec(table: VectorTable) -> Iterator[bytes]:
    """Yield word2vec's text format, which fastText's .vec files have, too: a header, then lines as in GloVe's."""
    yield header(table)
    yield from glove(table)


def binary(table: VectorTable) -> Iterator[bytes]:
    """Yield word2vec's binary format: a header, then each word, a space, little-endian float32 numbers, a line end."""
    yield header(table)
    matrix = table.matrix.astype("<f4")
    for word, row in zip(table.words, matrix, strict=True):
        yield word.encode() + b" " + row.tobytes() + b"\n"


FORMATS: dict[str, Callable[[VectorTable], Iterator[bytes]]] = {
    "word2vec": word2vec,
    "binary": binary,
    "glove": glove,
    "fasttext": word2vec,
}
