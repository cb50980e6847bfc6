import gzip
import re

import numpy as np
import pytest

from heedful.data.word_vectors import FORMATS, VectorTable, read_vectors, writable, write_vectors
from heedful.errors import InputError, RunError

TABLE = VectorTable(
    ["the", "Küche", "猫", "3.5", "new_york"], np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32) * 1e-3
)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_back_every_bit(form, tmp_path):
    write_vectors(tmp_path / "vectors", TABLE, form)
    read = read_vectors(tmp_path / "vectors")
    assert read.words == TABLE.words
    np.testing.assert_array_equal(read.matrix, TABLE.matrix)


@pytest.mark.parametrize("form", FORMATS)
def test_a_name_that_ends_in_gz_is_of_a_compressed_file(form, tmp_path):
    write_vectors(tmp_path / "vectors", TABLE, form)
    write_vectors(tmp_path / "vectors.gz", TABLE, form)
    assert gzip.decompress((tmp_path / "vectors.gz").read_bytes()) == (tmp_path / "vectors").read_bytes()
    np.testing.assert_array_equal(read_vectors(tmp_path / "vectors.gz").matrix, TABLE.matrix)


def test_the_text_formats_differ_by_their_header(tmp_path):
    for form in ("word2vec", "glove", "fasttext"):
        write_vectors(tmp_path / form, TABLE, form)
    word2vec, glove, fasttext = ((tmp_path / form).read_bytes() for form in ("word2vec", "glove", "fasttext"))
    assert word2vec == fasttext == b"5 7\n" + glove
    assert glove.startswith(b"the " + str(TABLE.matrix[0, 0]).encode())


def test_the_binary_format_is_that_of_the_authors_program(tmp_path):
    write_vectors(tmp_path / "vectors", TABLE, "binary")
    rows = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(TABLE.words, TABLE.matrix, strict=True)]
    assert (tmp_path / "vectors").read_bytes() == b"5 7\n" + b"".join(rows)


def test_what_cannot_be_written_is_told(tmp_path):
    with pytest.raises(InputError, match=re.escape('unknown word vector format "npy"; choose one of word2vec')):
        write_vectors(tmp_path / "vectors", TABLE, "npy")
    with pytest.raises(InputError, match="contains a space"):
        write_vectors(tmp_path / "vectors", VectorTable(["of course"], TABLE.matrix[:1]), "glove")
    with pytest.raises(RunError, match="cannot write"):
        write_vectors(tmp_path / "none" / "vectors", TABLE, "glove")
    assert list(tmp_path.iterdir()) == []


def test_words_are_left_out_only_where_a_file_would_be_cut(tmp_path):
    table = VectorTable(["a\u00a0b", "a b", "\u3000", "c\tb", ""], TABLE.matrix)
    kept = writable(table)
    assert kept.words == ["a\u00a0b", "\u3000"]
    write_vectors(tmp_path / "vectors", kept, "word2vec")
    read = read_vectors(tmp_path / "vectors")
    assert read.words == kept.words
    np.testing.assert_array_equal(read.matrix, TABLE.matrix[[0, 2]])
