"""Which characters of a text each piece stands for."""

import unicodedata
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_folders import TEXTS, write_bert, write_gpt2, write_marian, write_unigram
from heedful.config.schema import TokenizerConfig
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer import UNK, Tokenizer
from heedful.text.training import train_tokenizer

KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")
LINES = [
    "The cat sits on the mat, and the other cat sat there.",
    "Zwei Frauen essen Äpfel im Garten; die Äpfel schmecken süß.",
    "我吃苹果。他也吃苹果，苹果很好吃。",
] * 5
FOREIGN = {"bert": write_bert, "gpt2": write_gpt2, "unigram": write_unigram, "marian": write_marian}

texts = st.text() | st.text(alphabet="at ÄS苹果\u0301<>☃\t\n", max_size=23)


@cache
def trained(kind: str, **settings: object) -> Tokenizer:
    return train_tokenizer(LINES, TokenizerConfig(kind=kind, **{"vocab_size": 389, **settings}))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    return {name: from_hugging_face(write(folder / name))[0] for name, write in FOREIGN.items()}


def places_by_bytes(tokenizer: Tokenizer, text: str, ids: list[int]) -> list[tuple[int, int] | None]:
    """The places of pieces that spell a text byte for byte; none of what only spells the space put before it."""
    lead = len(tokenizer.spell(ids)) - len(text.encode())
    owner = [number for number, character in enumerate(text) for _ in character.encode()]
    found, begin = [], -lead
    for i in ids:
        end = begin + len(tokenizer.spell([i]))
        inside = owner[max(begin, 0) : max(end, 0)]
        found.append((inside[0], inside[-1] + 1) if inside else None)
        begin = end
    return found


def assert_lossless_places(tokenizer: Tokenizer, text: str) -> None:
    ids, places = tokenizer.encode_with_places(text)
    assert ids == tokenizer.encode(text)
    expected = places_by_bytes(tokenizer, text, ids)
    assert [place for place, known in zip(places, expected, strict=True) if known] == [e for e in expected if e]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pretokenized", [False, True])
@settings(max_examples=20)
@given(text=texts)
def test_a_piece_stands_for_the_characters_whose_bytes_it_spells(kind, pretokenized, text):
    assert_lossless_places(trained(kind, pretokenized=pretokenized), text)


@settings(max_examples=20)
@given(text=texts)
def test_so_does_a_piece_of_byte_level_bpe(foreign, text):
    assert_lossless_places(foreign["gpt2"], text)


@pytest.mark.parametrize("kind", ["word", "wordpiece"])
def test_an_unknown_word_has_its_place(kind):
    ids, places = trained(kind, byte_fallback=False).encode_with_places("The ☃☃ cat")
    assert (ids[1], places) == (UNK, [(0, 3), (3, 6), (6, 10)])


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_normal_form_changes_is_found_in_the_text_itself(kind):
    tokenizer = trained(kind, normalization="nfkc", lowercase=True)
    text = "ﬁnd SU\u0308SS ①"  # the mark joins the letter before it
    ids, places = tokenizer.encode_with_places(text)
    assert ids == tokenizer.encode(text)
    assert places[0][0] == 0
    assert {9, 11} <= {end for _, end in places}
    assert 6 not in {end for _, end in places}  # would cut between letter and mark


@pytest.mark.parametrize("name", FOREIGN)
@settings(max_examples=20)
@given(text=texts | st.sampled_from(TEXTS))
def test_places_of_foreign_pieces_go_from_left_to_right_and_miss_no_letter(foreign, name, text):
    tokenizer = foreign[name]
    ids, places = tokenizer.encode_with_places(text)
    assert ids == tokenizer.encode(text)
    assert all(0 <= begin < end <= len(text) for begin, end in places)
    assert places == sorted(places)
    covered = {place for begin, end in places for place in range(begin, end)}
    assert not any(text[place].isalpha() for place in set(range(len(text))) - covered)


def test_pieces_of_bert_stand_for_the_letters_without_their_accents_and_case(foreign):
    tokenizer = foreign["bert"]
    for text in (*TEXTS, "E\u0301COLE cafe\u0301s"):
        ids, places = tokenizer.encode_with_places(text)
        for i, (begin, end) in zip(ids, places, strict=True):
            letters = unicodedata.normalize("NFD", text[begin:end].lower())
            plain = "".join(c for c in letters if not unicodedata.combining(c))
            assert i == UNK or plain == tokenizer.spell([i]).decode().strip()


def test_what_is_not_encoded_goes_with_the_piece_before_it_up_to_a_space(foreign):
    _, places = foreign["bert"].encode_with_places("\u200dthe\u200d\u200d cat \u200d the")
    assert places == [(1, 6), (7, 10), (13, 16)]


@pytest.mark.parametrize("kind", KINDS)
def test_space_stands_with_the_word_after_it_or_alone(kind):
    text = "The  cat sat"
    _, places = trained(kind).encode_with_places(text)
    assert all(not text[begin:end].endswith(" ") or text[begin:end] == " " for begin, end in places)
    assert all(before[1] == after[0] for before, after in pairwise(dict.fromkeys(places)))


def test_an_empty_text_has_no_pieces(foreign):
    assert foreign["bert"].encode_with_places("") == ([], [])
    assert trained("character").encode_with_places("") == ([], [])


@pytest.mark.parametrize("kind", ["character", "bpe", "unigram"])
def test_neighbouring_characters_that_the_vocabulary_lacks_are_one_part(kind):
    tokenizer = trained(kind, byte_fallback=False)
    assert tokenizer.unknown("The ☃☁ cat☂, ☃ ☁") == ["☃☁", "☂", "☃", "☁"]
    assert trained(kind).unknown("The ☃☁ cat") == []


def test_words_that_the_vocabulary_lacks_are_parts_by_themselves():
    assert trained("word", byte_fallback=False).unknown("The ice bear cat") == ["ice", "bear"]
