"""Word vectors: their files (word2vec text and binary, GloVe, fastText's .vec), and the space that they span.

V words in a table, M of them matched, D vector size, Q questions.
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
from heedful.wording import counted, did_you_mean

MAX_SIZE = 100_000  # maximum number of dimensions of a vector
MAX_LINE = 1 << 22  # maximum size in bytes of a word with its vector, as text or as binary numbers

Entry = tuple[int, str, np.ndarray]  # its line in a text file, or number in a binary one, from 1; word; float32, (D,)


@dataclass(frozen=True)
class VectorTable:
    """Word vectors in memory: row i of `matrix`, float32, (V, D), is the vector of `words[i]`."""

    words: list[str]
    matrix: np.ndarray


def read_vectors(path: Path, words: Container[str] | None = None) -> VectorTable:
    """Read the vectors of `words`, by default all, from a file that may be compressed. Other words take no memory.

    If a word occurs several times, its first vector is used.
    """
    vectors: dict[str, np.ndarray] = {}
    with open_bytes(path) as stream:
        for _, word, vector in entries(stream, path):
            if (words is None or word in words) and word not in vectors:
                vectors[word] = vector
    if not vectors:
        raise InputError(f"{path}: contains no vectors for any of the requested words; is it a word vector file?")
    return VectorTable(list(vectors), np.stack(list(vectors.values())))


def vector_size(path: Path) -> int:
    """Return the size of the first word vector of a file. The rest of the file is not read."""
    with open_bytes(path) as stream:
        for _, _, vector in entries(stream, path):
            return len(vector)
    raise InputError(f"{path}: contains no vectors; is it a word vector file?")


def match(vectors: VectorTable, pieces: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Find the pieces that have a word vector; return the vectors, float32, (M, D), and the pieces' indices, (M,)."""
    row_of = {word: row for row, word in enumerate(vectors.words)}
    matches = [(row_of[piece], index) for index, piece in enumerate(pieces) if piece in row_of]
    rows, indices = np.array(matches, dtype=np.int64).reshape(-1, 2).T
    return vectors.matrix[rows], indices


def entries(stream: ByteStream, path: Path) -> Iterator[Entry]:
    """Yield the entries of a word vector file in any of the formats, which is detected."""

    def is_text(line: bytes) -> bool:  # binary numbers contain control characters, or bytes that are not UTF-8
        try:
            return re.search(r"[\x00-\x08\x0e-\x1f]", line.decode("utf-8")) is None
        except UnicodeDecodeError:
            return False

    first = next(_lines(stream, path), b"").removeprefix(BOM_UTF8)
    if not first:
        raise InputError(f"{path}: is empty; give a word vector file")
    # word2vec and fastText files begin with the number and size of the vectors; GloVe files have no header.
    header = re.fullmatch(rb"(\d{1,18})[ \t](\d{1,18})\s*", first)
    if header is None:
        rows, promised = _text_entries(chain([first], _lines(stream, path)), path, 1), None
    else:
        promised, size = map(int, header.groups())
        if size > MAX_SIZE:
            raise InputError(f"{path}, line 1: announces vectors of {size:,} numbers; is it a word vector file?")
        second = stream.readline(MAX_LINE)
        fields = second.split()
        # A word in a text file need not be UTF-8, so a row that ends in `size` numbers is also text.
        if (len(fields) > size and all(map(_is_number, fields[-size:]))) or is_text(second):
            rows = _text_entries(chain([second], _lines(stream, path)), path, 2, size)
        else:
            rows = _binary_entries(stream, second, promised, size, path)
    count = 0
    for number, word, vector in rows:
        if not np.isfinite(vector).all():
            raise InputError(f'{path}: the vector of "{word}", number {number}, contains infinite or NaN values')
        count += 1
        yield number, word, vector
    if promised is not None and count != promised:
        raise InputError(
            f"{path}: contains {counted(count, 'vectors')}, but its first line announces {promised}; download it again"
        )


def _lines(stream: ByteStream, path: Path) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise InputError(f"{path}: a line has more than {MAX_LINE:,} bytes; is it a word vector file?")
        yield line


def _text_entries(rows: Iterable[bytes], path: Path, first: int, size: int | None = None) -> Iterator[Entry]:
    """Yield word vectors from lines of text, each a word and its numbers. Blank lines are skipped.

    Words may contain spaces, so the number of values per line comes from the header (`size`) or the first line.
    `first` is the line number of the first row.
    """
    for number, row in enumerate(rows, start=first):
        fields = row.split()
        if not fields and number > first:
            continue
        size = len(fields) - 1 if size is None else size
        word = fields[:-size] if size > 0 else []
        if not word or (len(word) > 1 and _is_number(word[-1])):
            if size <= 0 and number == first == 1:
                raise InputError(f"{path}, line 1: is not a word followed by numbers; is it a word vector file?")
            count = counted(max(len(fields) - 1, 0), "numbers")
            promise = "the first line announces" if first > 1 else "the first vector has"
            remedy = "check the file"
            if len(word) > 1:  # a word with a space whose last part is a number, or one number too many
                name = b"_".join(word).decode("utf-8", errors="replace")
                remedy += f' or, if the word of this line contains a space, write it as "{name}"'
            raise InputError(f"{path}, line {number}: has {count}, but {promise} {max(size, 0)}; {remedy}")
        try:
            with np.errstate(over="ignore"):  # numbers that are too large become infinite, which `entries` rejects
                vector = np.array(fields[-size:], dtype=np.float32)
        except ValueError as error:
            if number == first == 1 and not any(map(_is_number, fields)):
                raise InputError(
                    f"{path}, line 1: is not a word followed by numbers; is it a word vector file?"
                ) from error
            wrong = next(field for field in fields[-size:] if not _is_number(field)).decode("utf-8", errors="replace")
            problem = f'expected a word followed by {counted(size, "numbers")}, but found "{wrong}"'
            raise InputError(f"{path}, line {number}: {problem}") from error
        yield number, b" ".join(word).decode("utf-8", errors="replace"), vector


def _is_number(field: bytes) -> bool:
    try:
        return bool(np.isfinite(float(field)))
    except ValueError:
        return False


def _binary_entries(stream: ByteStream, begin: bytes, count: int, size: int, path: Path) -> Iterator[Entry]:
    """Yield word vectors from word2vec's binary format: a word, a space and little-endian float32 numbers.

    There may be a line feed before the next word.
    """
    # Vectors can contain any bytes, so only their size shows where the next word begins.
    buffer = begin
    for number in range(1, count + 1):
        # Without the limit, a file without spaces would be read into memory completely.
        while (space := buffer.find(b" ")) < 0 or len(buffer) < space + 1 + 4 * size:
            more = stream.read(1 << 20) if len(buffer) <= MAX_LINE else b""
            if not more:
                raise InputError(f"{path}: ends inside vector {number} of {count}; copy or download it again")
            buffer += more
        end = space + 1 + 4 * size
        vector = np.frombuffer(buffer[space + 1 : end], dtype="<f4").astype(np.float32)
        yield number, buffer[:space].lstrip(b"\n").decode("utf-8", errors="replace"), vector
        buffer = buffer[end:]


SEPARATORS = re.compile(r"[ \t\n\r\v\f]")  # in word vector files; words may contain other spaces
WRITE_CHUNK = 1 << 10  # number of vectors that are formatted at a time


def write_vectors(path: Path, table: VectorTable, form: str) -> None:
    """Write word vectors to a file atomically. Text formats keep the full float32 precision.

    A file whose name ends in .gz is compressed.
    """
    if form not in FORMATS:
        raise InputError(f'unknown word vector format "{form}"; choose one of {", ".join(FORMATS)}')
    if unfit := next((word for word in table.words if not _is_writable(word)), None):
        raise InputError(
            f"the word {unfit!r} is empty or contains a space, which separates columns in word vector files; leave it "
            "out"
        )
    try:
        with atomic_file(path) as file, ExitStack() as stack:
            out: BinaryIO | GzipFile = file
            if path.suffix == ".gz":  # without the file name and the time, so that the bytes are the same each time
                out = stack.enter_context(GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            for part in FORMATS[form](table):
                out.write(part)
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror or error}; make room for it or choose another file"
        ) from error


def _is_writable(word: str) -> bool:
    return SEPARATORS.search(word) is None and word != ""


def writable(table: VectorTable) -> VectorTable:
    """Return the vectors of the words that can be written to a file."""
    rows = [row for row, word in enumerate(table.words) if _is_writable(word)]
    return VectorTable([table.words[row] for row in rows], table.matrix[rows])


def _glove(table: VectorTable) -> Iterator[bytes]:
    """Yield chunks of lines without a header. A line is a word and its numbers, separated by spaces."""
    for begin in range(0, len(table.words), WRITE_CHUNK):
        rows = zip(table.words[begin : begin + WRITE_CHUNK], table.matrix[begin : begin + WRITE_CHUNK], strict=True)
        # `str` of a float32 is the shortest text that reads back as the same number.
        yield "".join(f"{word} {' '.join(map(str, row.astype(np.float32)))}\n" for word, row in rows).encode()


def _word2vec(table: VectorTable) -> Iterator[bytes]:
    """Yield a header with the number and size of the vectors, then lines as in the GloVe format."""
    yield f"{len(table.words)} {table.matrix.shape[1]}\n".encode()
    yield from _glove(table)


def _binary(table: VectorTable) -> Iterator[bytes]:
    """Yield the header, then for each word: the word, a space, little-endian float32 numbers, and a line feed."""
    yield f"{len(table.words)} {table.matrix.shape[1]}\n".encode()
    for word, row in zip(table.words, table.matrix.astype("<f4"), strict=True):
        yield word.encode() + b" " + row.tobytes() + b"\n"


FORMATS: dict[str, Callable[[VectorTable], Iterator[bytes]]] = {
    "word2vec": _word2vec,
    "binary": _binary,
    "glove": _glove,
    "fasttext": _word2vec,
}


Vectors = NDArray[np.float32]
SIMILARITIES = 1 << 25  # maximum number of similarities in memory


class Neighbour(NamedTuple):
    """A word near a query, with the cosine similarity of the two vectors."""

    word: str
    similarity: float


class VectorSpace:
    """Words with their vectors, compared by cosine similarity. A word without a vector is looked up in lower case."""

    def __init__(self, table: VectorTable) -> None:
        self.words = table.words  # most frequent first, if the vectors are from a trained model
        self.matrix = table.matrix  # float32, (V, D)
        largest = np.abs(table.matrix).max(axis=1, keepdims=True)
        scaled = table.matrix / np.where(largest > 0, largest, 1)  # so that squares neither overflow nor underflow
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        self.directions = scaled / np.where(lengths > 0, lengths, 1)
        self._rows = {word: row for row, word in enumerate(table.words)}

    def find(self, word: str) -> int | None:
        """Return the row of a word, as written or in lower case, or None if it has no vector."""
        return self._rows.get(word, self._rows.get(word.lower()))

    def row(self, word: str) -> int:
        row = self.find(word)
        if row is None:
            # difflib compares words one by one, which takes seconds for millions; the first ones are the most frequent.
            near = get_close_matches(word.lower(), self.words[:50_000], n=3)
            raise InputError(f'"{word}" has no vector' + (f"; {did_you_mean(near)}" if near else ""))
        return row

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        return np.array([self.row(word) for word in words], np.int64)

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine similarity of the vectors of two words."""
        a, b = self.directions[self.rows([first, second])]
        return float(np.clip(a @ b, -1, 1))

    def nearest(self, word: str, count: int = 10) -> list[Neighbour]:
        """Return the words nearest to a word by cosine similarity, nearest first, without the word itself."""
        row = self.row(word)
        return self.nearest_to(self.directions[row], count, [row])

    def analogy(self, a: str, b: str, c: str, count: int = 10, among: int | None = None) -> list[Neighbour]:
        """Return the words nearest to a - b + c, such as king - man + woman, without these three.

        The answers are chosen from the first `among` words, by default from all. See Mikolov et al. (2013c).
        """
        rows = self.rows([a, b, c])
        plus, minus, other = self.directions[rows]
        return self.nearest_to(plus - minus + other, count, rows, among)

    def nearest_to(
        self, vector: Vectors, count: int, left_out: Sequence[int] | NDArray[np.int64] = (), among: int | None = None
    ) -> list[Neighbour]:
        """Return the `count` words nearest to a vector by cosine similarity, without the words in rows `left_out`.

        With `among`, only the first `among` words are candidates.
        """
        length = float(np.linalg.norm(vector))
        similarities = self.directions[:among] @ (vector / length if length else vector)
        # A word that is left out must not be an answer, even if there are few others.
        out = {int(row) for row in left_out if row < len(similarities)}
        similarities[list(out)] = -np.inf
        best = np.argsort(-similarities, kind="stable")[: max(0, min(count, len(similarities) - len(out)))]
        return [Neighbour(self.words[row], float(similarities[row])) for row in best]

    def solve(self, questions: NDArray[np.int64], among: int | None = None) -> NDArray[np.int64]:
        """Answer analogies "a is to b as c is to ?" with the word nearest to b - a + c, excluding the question's words.

        `questions` are the rows of a, b and c, (Q, 3). The answers, (Q,), are rows of the first `among` words, by
        default of all words.
        """
        candidates = self.directions[:among]
        answers = []
        # All questions at once would need Q x V similarities.
        step = max(1, SIMILARITIES // len(candidates))
        for begin in range(0, len(questions), step):
            part = questions[begin : begin + step]
            a, b, c = (self.directions[column] for column in part.T)
            # (questions, candidates). b - a + c need not be normalised: its length scales a question's row as a whole.
            similarities = (b - a + c) @ candidates.T
            for column in part.T:  # a question's own words are not answers to it
                inside = np.flatnonzero(column < len(candidates))
                similarities[inside, column[inside]] = -np.inf
            answers.append(similarities.argmax(1))
        return np.concatenate([np.zeros(0, np.int64), *answers])
