"""Lines are counted before they are read, and text that the vocabulary does not know is told in time."""

import gzip
import os
from unicodedata import normalize

import pytest

from heedful.cli.inputs import count_lines, input_lines, warning_if_unknown
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.storage.complete_folder import MANIFEST
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import train_tokenizer

KNOWN, FOREIGN = "the cat sat on the mat", "собака спит на коврике"


def tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer([KNOWN] * 3, TokenizerConfig(kind=kind, vocab_size=307))


@pytest.mark.parametrize(
    ("content", "count"), [(b"", 0), (b"\n", 1), (b"a\nb", 2), (b"a\r\nb\n", 2), (b"x" * 3_000_001 + b"\ny", 2)]
)
def test_lines_are_counted_as_they_are_read(tmp_path, content, count):
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    assert count_lines(tmp_path / "plain") == count_lines(tmp_path / "packed.gz") == count
    assert count_lines(tmp_path / "plain", tmp_path / "packed.gz") == 2 * count


def test_what_can_be_read_only_once_is_not_counted(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert count_lines(tmp_path / "pipe") is None


def test_the_name_of_a_file_is_refused_where_a_text_is_expected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("the cat\n")
    (tmp_path / "folder").mkdir()
    harmless = ["the cat", "folder", "", "\0", "w" * 5000, "half a character: \udcff"]
    assert input_lines(harmless, None) == harmless
    with pytest.raises(
        InputError, match=r"notes\.txt is a file, not a text; to read it as lines, give --input notes\.txt"
    ):
        input_lines(["the cat", "notes.txt"], None)
    (tmp_path / "Cat.JPG").touch()
    with pytest.raises(InputError, match=r"Cat\.JPG is a media file, but this command or its model reads texts"):
        input_lines(["Cat.JPG"], None)


def test_the_name_of_a_model_is_refused_where_a_text_is_expected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "model" / MANIFEST).touch()
    for name in ("en-de", "run"):
        with pytest.raises(InputError, match=f"{name} is a model, not a text; to use it, give --model {name}"):
            input_lines([name, "the cat"], None)


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_foreign_text_is_told_as_soon_as_there_is_enough_of_it(kind, capsys):
    texts = warning_if_unknown([FOREIGN, FOREIGN, FOREIGN, KNOWN], tokenizer(kind))
    next(texts)
    assert capsys.readouterr().err == ""
    next(texts)
    assert "of the text is not in the model's vocabulary" in capsys.readouterr().err
    assert list(texts) == [FOREIGN, KNOWN]
    assert capsys.readouterr().err == ""


def test_a_short_foreign_text_is_told_at_its_end(capsys):
    assert list(warning_if_unknown([FOREIGN[:5]], tokenizer("bpe"))) == [FOREIGN[:5]]
    assert "83% of the text is not" in capsys.readouterr().err


def test_some_foreign_words_among_others_are_no_matter(capsys):
    list(warning_if_unknown([KNOWN] * 7 + [FOREIGN] + [KNOWN] * 7, tokenizer("character")))
    assert capsys.readouterr().err == ""


def test_a_vocabulary_of_bytes_knows_every_script_alike(capsys):
    list(warning_if_unknown([FOREIGN] * 7, tokenizer("byte")))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_accents_apart_from_letters_that_the_model_knows_composed_are_reported_once(kind, capsys):
    learned = train_tokenizer(
        ["M\u00fcller kauft Br\u00f6tchen im L\u00e4dchen"] * 99, TokenizerConfig(kind=kind, vocab_size=300)
    )
    composed = "Br\u00f6tchen im L\u00e4dchen"
    list(warning_if_unknown([composed] * 3, learned))
    assert capsys.readouterr().err == ""
    list(warning_if_unknown([normalize("NFD", composed)] * 3, learned))
    assert capsys.readouterr().err.count("accents as separate characters (Unicode NFD)") == 1
