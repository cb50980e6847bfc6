"""Word vectors: their files (word2vec, text and binary, GloVe, fastText's .vec), and the space that they span.

V words, D size of the vectors, Q queries.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches
from gzip import GzipFile
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.readers.files import ByteStream, open_bytes
from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file
from heedful.wording import counted

MAX_SIZE = 100_000  # numbers of a vector
MAX_LINE = 1 << 22  # bytes of a word and its vector, as text or as numbers

Entry = tuple[int, str, np.ndarray]  # line or number of the entry, from 1; a word; its vector, float32


@dataclass(frozen=True)
class VectorTable:
    """Word vectors in memory: row i of `matrix`, float32 of shape (n, d), belongs to `words[i]`."""

    words: list[str]
    matrix: np.ndarray


def read_vectors(path: Path, words: Container[str] | None = None) -> VectorTable:
    """Read word vectors, of `words` or all, from a file that may end in .gz. Other words take no memory."""
    vectors: dict[str, np.ndarray] = {}
    with open_bytes(path) as stream:
        for _, word, vector in entries(stream, path):
            if (words is None or word in words) and word not in vectors:
                vectors[word] = vector
    if not vectors:
        raise InputError(f"{path}: holds no vector for any of the words looked for; is it a file of word vectors?")
    return VectorTable(list(vectors), np.stack(list(vectors.values())))


def vector_size(path: Path) -> int:
    """The size of the first word vector of a file; the rest of the file is not read."""
    with open_bytes(path) as stream:
        for _, _, vector in entries(stream, path):
            return len(vector)
    raise InputError(f"{path}: holds no vector; is it a file of word vectors?")


def match(vectors: VectorTable, pieces: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Find the pieces that have a word vector: the vectors, float32 (m, d), and places of the pieces, int64 (m,)."""
    row_of = {word: row for row, word in enumerate(vectors.words)}
    matches = [(row_of[piece], place) for place, piece in enumerate(pieces) if piece in row_of]
    rows, places = np.array(matches, dtype=np.int64).reshape(-1, 2).T
    return vectors.matrix[rows], places


def entries(stream: ByteStream, path: Path) -> Iterator[Entry]:
    """Yield each entry of a file of word vectors, in any format: its line or number, its word and its vector."""
    first = next(lines(stream, path), b"").removeprefix(BOM_UTF8)
    if not first:
        raise InputError(f"{path}: is empty; name a file of word vectors")
    header = re.fullmatch(rb"(\d{1,18})[ \t](\d{1,18})\s*", first)
    if header is None:
        rows, promised = text_entries(chain([first], lines(stream, path)), path, 1), None
    else:
        promised, size = map(int, header.groups())
        if size > MAX_SIZE:
            raise InputError(f"{path}, line 1: promises vectors of {size:,} numbers; is it a file of word vectors?")
        second = stream.readline(MAX_LINE)
        fields = second.split()
        is_row = len(fields) > size and all(map(is_number, fields[-size:]))  # in whatever encoding its word is
        if is_row or is_text(second):
            rows = text_entries(chain([second], lines(stream, path)), path, 2, size)
        else:
            rows = binary_entries(stream, second, promised, size, path)
    count = 0
    for number, word, vector in rows:
        if not np.isfinite(vector).all():
            raise InputError(f'{path}: the vector of "{word}", number {number}, has numbers that are not finite')
        count += 1
        yield number, word, vector
    if promised is not None and count != promised:
        raise InputError(
            f"{path}: holds {counted(count, 'vectors')} where its first line promises {promised}; download it again"
        )


def lines(stream: ByteStream, path: Path) -> Iterator[bytes]:
    """Yield the remaining lines of a byte stream, and raise an error for one that is too long to be a vector."""
    while line := stream.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise InputError(f"{path}: a line has more than {MAX_LINE:,} bytes; is it a file of word vectors?")
        yield line


def is_text(line: bytes) -> bool:
    """True if a line of bytes could be text: float32 numbers hold control characters, or bytes that are no UTF-8."""
    try:
        return re.search(r"[\x00-\x08\x0e-\x1f]", line.decode("utf-8")) is None
    except UnicodeDecodeError:
        return False


def text_entries(rows: Iterable[bytes], path: Path, first: int, size: int | None = None) -> Iterator[Entry]:
    """Yield word vectors from lines of text, each a word and its numbers.

    The header or the first line shows how many numbers, because a word may hold spaces. Blank lines are left out.
    """
    for number, row in enumerate(rows, start=first):
        fields = row.split()
        if not fields and number > first:
            continue
        size = len(fields) - 1 if size is None else size
        word = fields[:-size] if size > 0 else []
        if not word or (len(word) > 1 and is_number(word[-1])):
            count = counted(max(len(fields) - 1, 0), "numbers")
            promise = "the first line promises" if first > 1 else "the first vector has"
            remedy = "check the file"
            if len(word) > 1:  # a word with a space whose last part is a number, or a number too many
                name = b"_".join(word).decode("utf-8", errors="replace")
                remedy += f', or write its word as "{name}" if it has a space in it'
            raise InputError(f"{path}, line {number}: {count} where {promise} {max(size, 0)}; {remedy}")
        try:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, which `entries` refuses
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


def binary_entries(stream: ByteStream, begin: bytes, count: int, size: int, path: Path) -> Iterator[Entry]:
    """Yield word vectors from word2vec's binary format: a word, a space and little-endian float32 numbers.

    There may be a line end before the next word.
    """
    # Vectors hold any bytes, so that only the size tells where the next word begins.
    buffer = begin
    for number in range(1, count + 1):
        while (space := buffer.find(b" ")) < 0 or len(buffer) < space + 1 + 4 * size:
            more = stream.read(1 << 20) if len(buffer) <= MAX_LINE else b""
            if not more:
                raise InputError(f"{path}: ends in vector {number} of {count}; copy or download it again")
            buffer += more
        end = space + 1 + 4 * size
        vector = np.frombuffer(buffer[space + 1 : end], dtype="<f4").astype(np.float32)
        yield number, buffer[:space].lstrip(b"\n").decode("utf-8", errors="replace"), vector
        buffer = buffer[end:]


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
        with atomic_file(path) as file, ExitStack() as stack:
            out: BinaryIO | GzipFile = file
            if path.suffix == ".gz":  # without name and time: the same bytes come out each time
                out = stack.enter_context(GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            for part in FORMATS[form](table):
                out.write(part)
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror or error}; make room for it or name another file"
        ) from error


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


Vectors = NDArray[np.float32]
SIMILARITIES = 1 << 25  # similarities in memory


class Neighbour(NamedTuple):
    """A word near a query, with the cosine of the angle between the two vectors."""

    word: str
    similarity: float


class VectorSpace:
    """Words with their vectors, to compare by the cosine; a word may also be known in lower case only."""

    def __init__(self, table: VectorTable) -> None:
        self.words = table.words  # of a trained model in the order of their frequency
        self.matrix = table.matrix  # float32, (V, D)
        largest = np.abs(table.matrix).max(axis=1, keepdims=True)
        scaled = table.matrix / np.where(largest > 0, largest, 1)  # so that no square is too large or too small
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        self.directions = scaled / np.where(lengths > 0, lengths, 1)
        self._rows = {word: row for row, word in enumerate(table.words)}

    def find(self, word: str) -> int | None:
        """The row of a word, as written or else in lower case; None if it has no vector."""
        return self._rows.get(word, self._rows.get(word.lower()))

    def row(self, word: str) -> int:
        row = self.find(word)
        if row is None:
            near = get_close_matches(word.lower(), self.words[:50_000], n=3)
            raise InputError(f'"{word}" has no vector' + (f"; did you mean {' or '.join(near)}?" if near else ""))
        return row

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        return np.array([self.row(word) for word in words], np.int64)

    def similarity(self, first: str, second: str) -> float:
        """The cosine of the angle between the vectors of two words."""
        a, b = self.directions[self.rows([first, second])]
        return float(np.clip(a @ b, -1, 1))

    def nearest(self, word: str, count: int = 10) -> list[Neighbour]:
        """The words nearest to a word by the cosine, the nearest first, without the word itself."""
        row = self.row(word)
        return self.nearest_to(self.directions[row], count, [row])

    def analogy(self, a: str, b: str, c: str, count: int = 10, among: int | None = None) -> list[Neighbour]:
        """The words nearest to a - b + c, such as king - man + woman, without the three words (Mikolov et al. 2013c).

        Answers come from the first `among` words; None: from all.
        """
        rows = self.rows([a, b, c])
        plus, minus, other = self.directions[rows]
        return self.nearest_to(plus - minus + other, count, rows, among)

    def nearest_to(
        self, vector: Vectors, count: int, left_out: Sequence[int] | NDArray[np.int64] = (), among: int | None = None
    ) -> list[Neighbour]:
        """The words nearest to a vector by the cosine, of the first `among` or all, without the rows `left_out`."""
        length = float(np.linalg.norm(vector))
        similarities = self.directions[:among] @ (vector / length if length else vector)
        # A word that is left out must not be an answer, even where there are few others.
        out = {int(row) for row in left_out if row < len(similarities)}
        similarities[list(out)] = -np.inf
        best = np.argsort(-similarities, kind="stable")[: max(0, min(count, len(similarities) - len(out)))]
        return [Neighbour(self.words[row], float(similarities[row])) for row in best]

    def solve(self, questions: NDArray[np.int64], among: int | None = None) -> NDArray[np.int64]:
        """Answer analogies "a is to b as c is to ?" by the word nearest to b - a + c, question words left out.

        `questions` are the rows of a, b and c, (Q, 3); the answers are rows, too, (Q,), of the first `among` words.
        """
        candidates = self.directions[:among]
        answers = []
        step = max(1, SIMILARITIES // len(candidates))
        for begin in range(0, len(questions), step):
            part = questions[begin : begin + step]
            a, b, c = (self.directions[column] for column in part.T)
            similarities = (b - a + c) @ candidates.T
            for column in part.T:  # the words of a question are no answers to it
                inside = np.flatnonzero(column < len(candidates))
                similarities[inside, column[inside]] = -np.inf
            answers.append(similarities.argmax(1))
        return np.concatenate([np.zeros(0, np.int64), *answers])
