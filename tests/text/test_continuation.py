"""A text in parts is the same tokens as the text as a whole, wherever one word ends and the next one begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreign_folders import write_bert, write_gpt2
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer import MASK, Tokenizer
from heedful.text.training import train_tokenizer

LINES = ["the red cat sat on the mat", "a dog and a cat", "cats, dogs; mats!", "der Hund läuft"] * 3
KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")


def trained(kind: str, fallback: bool = True, **settings) -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocab_size=331 if fallback else 71, byte_fallback=fallback, **settings)
    return train_tokenizer(LINES, config)


TOKENIZERS = [trained(kind, fallback) for kind in KINDS for fallback in (True, False) if kind != "byte" or fallback]
words = st.lists(st.sampled_from(["the", "red", "cat", "cats", "Hund", "läuft", "zebra", "日本", "x1"]), min_size=1)


@given(words, words)
def test_a_text_and_what_goes_on_from_it_are_the_tokens_of_both(before, after):
    first, rest = " ".join(before), " " + " ".join(after)
    for tokenizer in TOKENIZERS:
        assert tokenizer.encode(first) + tokenizer.encode_continuation(rest) == tokenizer.encode(first + rest)


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: f"{t.config.kind}-{t.config.byte_fallback}")
def test_a_mark_may_follow_without_a_space(tokenizer):
    for first, rest in (("the cat", ", dogs"), ("the cat", "!"), ("cat", "")):
        assert tokenizer.encode(first) + tokenizer.encode_continuation(rest) == tokenizer.encode(first + rest)


@pytest.mark.parametrize("write", [write_bert, write_gpt2])
def test_a_tokenizer_from_elsewhere_goes_on_as_well(tmp_path, write):
    tokenizer, _ = from_hugging_face(write(tmp_path / "folder"))
    for first, rest in (("The cat", " sits on the mat"), ("The cat", ", and"), ("A man", " zzz 2024")):
        assert tokenizer.encode(first) + tokenizer.encode_continuation(rest) == tokenizer.encode(first + rest)


def test_half_a_character_is_refused():
    with pytest.raises(InputError, match="surrogate"):
        TOKENIZERS[0].encode_continuation("\udcff")


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_is_the_last_special_token_where_it_is_asked_for(kind):
    tokenizer = trained(kind, mask=True)
    assert tokenizer.pieces([MASK]) == ["<mask>"]
    assert tokenizer.first_piece == MASK + 1 == trained(kind).first_piece + 1
    assert MASK not in tokenizer.encode("the <mask> cat")
    assert tokenizer.decode([*tokenizer.encode("the cat"), MASK]) == "the cat"


def test_the_first_word_is_neither_special_nor_a_byte_unless_there_is_nothing_else():
    for tokenizer in TOKENIZERS:
        pieces = tokenizer.pieces([tokenizer.first_word])
        assert pieces[0].startswith("<0x") == (tokenizer.config.kind == "byte")
        assert tokenizer.first_piece <= tokenizer.first_word < len(tokenizer)
