"""Pieces and the words they spell."""

import pytest

from heedful.config.schema import TokenizerConfig
from heedful.inspector.capture.sources import Pieces
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.training import train_tokenizer

TEXT = ["der alte Hund sieht den Bahnhof.", "die alte Katze sieht, wie der Hund schläft.", "我看见一只猫在河边。"]


def trained(**settings) -> Tokenizer:
    return train_tokenizer(TEXT, TokenizerConfig(**{"kind": "bpe", "vocab_size": 331, **settings}))


def cut(text, tokenizer) -> Pieces:
    return Pieces.of([*tokenizer.encode(text), EOS], tokenizer)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "character", "byte", "word"])
def test_words_are_what_stands_between_spaces_and_signs(kind):
    pieces = cut("die alte Katze sieht den Bahnhof.", trained(kind=kind))
    assert pieces.words == ["die", "alte", "Katze", "sieht", "den", "Bahnhof", ".", "<eos>"]


def test_each_piece_has_a_label_and_a_word():
    pieces = cut("unbekannter Bahnhof", trained())
    assert pieces.ids[-1] == EOS
    assert pieces.labels[-1] == "<eos>"
    assert len(pieces.ids) == len(pieces.labels) == len(pieces.word_of_piece) > len(pieces.words)
    assert pieces.word_of_piece == sorted(pieces.word_of_piece)
    assert set(pieces.word_of_piece) == set(range(len(pieces.words)))


def test_chinese_is_read_piece_by_piece():
    pieces = cut("我看见一只猫。", trained(kind="character"))
    assert pieces.words == [*"我看见一只猫。", "<eos>"]


def test_a_character_in_bytes_stays_whole():
    pieces = cut("die Ж Katze", trained(kind="byte"))
    assert pieces.words == ["die", "Ж", "Katze", "<eos>"]


def test_nothing_is_only_its_end():
    assert cut("", trained()) == Pieces([EOS], ["<eos>"], ["<eos>"], [0])


def test_special_tokens_and_spaces_have_names():
    tokenizer = trained()
    assert Pieces.of([0, 2, EOS], tokenizer).words == ["<pad>", "<bos>", "<eos>"]
    assert all(cut("der  Hund", tokenizer).words)
