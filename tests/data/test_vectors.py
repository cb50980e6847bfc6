import gzip
import re

import numpy as np
import pytest

from heedful.data.word_vectors import match, read_vectors
from heedful.errors import InputError

WORDS = ["the", "Küche", "猫", "of course"]
MATRIX = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)


def text(header):
    rows = [f"{word} {' '.join(repr(float(x)) for x in row)}" for word, row in zip(WORDS, MATRIX, strict=True)]
    return "\n".join([*(["4 7"] if header else []), *rows, ""]).encode()


def binary(line_end):
    rows = [
        word.replace(" ", "_").encode() + b" " + row.tobytes() + line_end
        for word, row in zip(WORDS, MATRIX, strict=True)
    ]
    return b"4 7\n" + b"".join(rows)


FORMATS = {
    "word2vec text": text(True),
    "GloVe text": text(False),
    "word2vec binary": binary(b""),
    "word2vec binary with line ends": binary(b"\n"),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_is_told_apart_and_read(name, packed, tmp_path):
    path = tmp_path / ("vectors.gz" if packed else "vectors")
    path.write_bytes(gzip.compress(FORMATS[name]) if packed else FORMATS[name])
    vectors = read_vectors(path)
    assert [word.replace("_", " ") for word in vectors.words] == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


@pytest.mark.parametrize("header", [b"", b"2 3\n"])
def test_marks_of_encodings_and_blank_lines_are_no_words(header, tmp_path):
    path = tmp_path / "vectors"
    for content in (b"\xef\xbb\xbf" + header + b"a 1 2 3\nb 4 5 6\n", header + b"a 1 2 3\nb 4 5 6\n\n \n"):
        path.write_bytes(content)
        assert read_vectors(path).words == ["a", "b"]


def test_a_first_word_in_another_encoding_is_not_taken_for_the_binary_format(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(b"2 3\ncaf\xe9 1 2 3\nb 4 5 6\n")
    np.testing.assert_array_equal(read_vectors(path).matrix, [[1, 2, 3], [4, 5, 6]])


def test_only_the_words_looked_for_are_kept(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(text(True))
    vectors = read_vectors(path, {"猫", "the", "dog"})
    assert vectors.words == ["the", "猫"]
    np.testing.assert_array_equal(vectors.matrix, MATRIX[[0, 2]])


def test_pieces_find_their_vectors(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(text(False))
    rows, places = match(read_vectors(path), ["<pad>", "猫", "dog", "the"])
    np.testing.assert_array_equal(rows, MATRIX[[2, 0]])
    assert places.tolist() == [1, 3]
    assert match(read_vectors(path), ["dog"])[0].shape == (0, 7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2 3\nb 1 2\n", "line 2: has 2 numbers, but the first vector has 3"),
        (
            b"2 2\nthe 1 2\nwindows 10 1 2\n",
            'check the file or, if the word of this line contains a space, write it as "windows_10"',
        ),
        (b"Hello world.\n", "line 1: is not a word followed by numbers"),
        (b"a 1 2 3\nb 1 x 3\n", 'line 2: expected a word followed by 3 numbers, but found "x"'),
        (b"a 1 2 3\nb 1 1e39 3\n", 'the vector of "b", number 2, contains infinite or NaN values'),
        (b"a 1 2 3\nb 1 nan 3\n", 'the vector of "b", number 2, contains infinite or NaN values'),
        (b"", "vectors: is empty; give a word vector file"),
        (b"text,label\nit,good\n", "line 1: is not a word followed by numbers; is it a word vector file?"),
        (binary(b"")[:-5], "ends inside vector 4 of 4"),
        (b"3 2\na 1 2\nb 1\n", "line 3: has 1 number, but the first line announces 2; check the file"),
    ],
    ids=[
        "short line",
        "space in a word",
        "a text",
        "no number",
        "too large",
        "not finite",
        "empty",
        "a table",
        "cut off",
        "short line below a header",
    ],
)
def test_what_is_wrong_is_told_with_its_place(content, message, tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_vectors(path)


def test_a_file_without_any_of_the_words_is_refused(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(text(False))
    with pytest.raises(InputError, match="no vectors for any of the requested words"):
        read_vectors(path, {"dog"})
