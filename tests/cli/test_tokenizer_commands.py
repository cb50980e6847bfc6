import gzip
from functools import partial

import pytest
from invocation import invoke

from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer

TEXT = "the cat sat on the mat\n\n  two  spaces\u2028and\u0085more\r\nÄpfel ☃\n"


run = partial(invoke, "tokenizer")


@pytest.fixture
def text(tmp_path):
    """A file with hostile line ends."""
    file = tmp_path / "text"
    file.write_bytes(TEXT.encode())
    return file


@pytest.fixture
def folder(tmp_path, text):
    """A tokenizer trained on it."""
    run("train", text, "--out", tmp_path / "tokenizer", "--vocab-size", 307)
    return tmp_path / "tokenizer"


def test_every_line_is_counted(tmp_path, text, reporters):
    more = tmp_path / "more.gz"
    more.write_bytes(gzip.compress(b"another cat\n\nand a dog"))
    run("train", text, more, "--out", tmp_path / "tokenizer", "--vocab-size", 307)
    run("stats", tmp_path / "tokenizer", more)
    ids = run("encode", tmp_path / "tokenizer", text).stdout
    run("decode", tmp_path / "tokenizer", stdin=ids)
    found = [(reporter.total, reporter.done) for reporter in reporters]
    assert found == [(7, 7), (3, 3), (4, 4), (None, 4)]


def test_training_writes_what_was_asked_for(tmp_path, text):
    compressed = tmp_path / "more.gz"
    compressed.write_bytes(gzip.compress(b"another cat\n"))
    options = ["--kind", "word", "--no-byte-fallback", "--lowercase", "--normalization", "nfc", "--pretokenized"]
    result = run("train", text, compressed, "--out", tmp_path / "words", "--vocab-size", 17, *options)
    assert result.stdout == ""
    assert f"{tmp_path / 'words'}: word, 15 entries" in result.stderr
    config = Tokenizer.load(tmp_path / "words").config
    assert (config.kind, config.vocab_size, config.byte_fallback) == ("word", 17, False)
    assert (config.lowercase, config.normalization, config.pretokenized) == (True, "nfc", True)


def test_encoding_and_decoding_return_every_line(folder, text):
    ids = run("encode", folder, text).stdout
    assert ids.count("\n") == 4
    assert ids.split("\n")[1] == ""
    assert run("decode", folder, stdin=ids).stdout == TEXT.replace("\r\n", "\n")


def test_standard_input_is_read_where_no_file_is_named(folder, text):
    assert run("encode", folder, stdin=TEXT).stdout == run("encode", folder, text).stdout
    assert run("encode", folder, stdin="").stdout == ""


def test_a_line_feed_in_a_decoded_text_is_escaped(folder):
    assert run("decode", folder, stdin="14\n").stdout == "\\n\n"


def test_files_follow_each_other(folder, text):
    assert run("encode", folder, text, text).stdout == 2 * run("encode", folder, text).stdout


def test_pieces_can_be_shown(folder):
    assert run("encode", folder, "--pieces", stdin="the mats\n\n").stdout == "▁the ▁ m at s\n\n"


def test_statistics_stand_on_standard_output(folder, text):
    shown = run("stats", folder, text).stdout
    rows = dict(line.strip().rsplit(maxsplit=1) for line in shown.splitlines() if line.strip().split()[-1].isdigit())
    assert rows["lines"] == "4"
    assert "0.000% of the tokens" in shown
    assert "longest line" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7 x", "^input 2: not a list of token ids; write integers"),
        ("7 1e3", "input 2: not a list of token ids"),
        ("7 999", "input 2: id 999 is not in the vocabulary, whose ids go from 0 to"),
        ("-1", "input 2: id -1 is not in the vocabulary"),
    ],
)
def test_lines_that_cannot_be_decoded_are_named(folder, line, message):
    with pytest.raises(InputError, match=message):
        run("decode", folder, stdin=f"4\n{line}\n")


def test_a_file_that_cannot_be_decoded_is_named(folder, tmp_path):
    (tmp_path / "good").write_text("4\n5\n")
    (tmp_path / "bad").write_text("4\n5\nfive\n")
    with pytest.raises(InputError, match=r"/bad, line 3: not a list of token ids"):
        run("decode", folder, tmp_path / "good", tmp_path / "bad")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "bep"], '--kind must be .*, but is "bep"; did you mean "bpe"'),
        (["--normalization", "nfd"], "tokenizer.normalization must be"),
        (["--vocab-size", "200"], "is too small for 4 special tokens and 256 bytes"),
        (["--vocab-size", "-3"], "must be at least 5"),
        (["--kind", "byte", "--no-byte-fallback"], "spells everything in bytes"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, text, options, message):
    with pytest.raises(InputError, match=message):
        run("train", text, "--out", tmp_path / "tokenizer", *options)
    assert not (tmp_path / "tokenizer").exists()


def test_something_else_is_never_written_over(tmp_path, text):
    with pytest.raises(InputError, match="is not empty and does not contain an intact tokenizer"):
        run("train", tmp_path / "missing", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_a_tokenizer_is_replaced(folder, text):
    run("train", text, "--out", folder, "--kind", "character")
    assert Tokenizer.load(folder).config.kind == "character"


def test_files_that_cannot_be_read_are_named(tmp_path, folder):
    with pytest.raises(InputError, match=r"missing: .*no such file"):
        run("encode", folder, tmp_path / "missing")
    with pytest.raises(InputError, match="nothing: no such tokenizer; train one"):
        run("encode", tmp_path / "nothing", stdin="the cat\n")
    (tmp_path / "latin").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(InputError, match="latin, line 2, byte 4: 0xE9 is not valid UTF-8"):
        run("stats", folder, tmp_path / "latin")


def test_two_tokenizers_are_not_one(tmp_path, text):
    for side in ("source", "target"):
        run("train", text, "--out", tmp_path / "pair" / side, "--vocab-size", 283)
    with pytest.raises(InputError, match=r"contains two tokenizers; give .*source or .*target"):
        run("encode", tmp_path / "pair")
