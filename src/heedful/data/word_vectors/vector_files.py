"""Writer of files of word vectors: word2vec's text and binary formats, GloVe's text, and fastText's .vec."""

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from heedful.data.word_vectors.vectors import VectorTable
from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file

CUTS = re.compile(r"[ \t\n\r\v\f]")
AT_ONCE = 1 << 10  # vectors formatted at a time


def write_vectors(path: Path, table: VectorTable, form: str) -> None:
    """Write word vectors to a file, which appears as a whole or not at all; text keeps all digits of float32.

    A file whose name ends in .gz is compressed.

    Args:
        path: The file; one that is there is replaced.
        table: The words and their vectors.
        form: A name of `FORMATS`.

    Raises:
        InputError: There is no such format, or a word holds a space or a line end, which the formats cannot tell apart.
        RunError: The file cannot be written.
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
