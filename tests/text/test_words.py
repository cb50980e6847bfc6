"""Words, the pieces that spell them, and the rows that show them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_tokenizer import every_tokenizer
from heedful.text.tokenizer import BOS, EOS, UNK
from heedful.text.words import Spelled, rows_of_words, spell_words, split_words

WORDS = ["The", "cat", "(", "don't", ")", "unaffable", "Äpfel", "苹果", "☃☃", "...", "New York", "e\u0301", "\u00a0"]

sentences = st.lists(
    st.sampled_from(WORDS[:-1]) | st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Angela Merkel visited Paris.", ["Angela", "Merkel", "visited", "Paris", "."]),
        ("  don't (@a_b1)\u00a0… ", ["don", "'", "t", "(", "@", "a_b1", ")", "…"]),
        ("他住北京X1市。", ["他", "住", "北", "京", "X1", "市", "。"]),
        ("हिन्दी cafe\u0301", ["हिन्दी", "cafe\u0301"]),
        ("", []),
    ],
)
def test_a_typed_text_is_cut_at_spaces_punctuation_and_chinese_characters(text, words):
    assert split_words(text) == words


@every_tokenizer
@settings(max_examples=20)
@given(words=sentences)
def test_words_are_spelled_as_in_their_text(tokenizers, name, words):
    tokenizer = tokenizers[name]
    spelled = spell_words(tokenizer, words)
    assert len(spelled) == len(words)
    assert all(word.ids[word.first :] for word in spelled)
    kept = [any(tokenizer.spell([i]).strip() for i in tokenizer.encode(word)) for word in words]
    parts = [ids if keeps else ids[:-1] for (ids, _), keeps in zip(spelled, kept, strict=True)]
    assert [i for ids in parts for i in ids] == tokenizer.encode(" ".join(words))


@pytest.mark.parametrize("name", ["character", "byte", "gpt2", "unigram"])
def test_a_space_that_is_a_piece_of_its_own_is_not_where_a_word_begins(tokenizers, name):
    tokenizer = tokenizers[name]
    spelled = spell_words(tokenizer, ["The", "qat", "New York"])
    assert [tokenizer.decode(word.ids[word.first :])[0] for word in spelled] == ["T", "q", "N"]
    assert spelled[1].first == spelled[2].first == 1


@every_tokenizer
def test_a_word_of_which_nothing_is_kept_is_unknown(tokenizers, name):
    spelled = spell_words(tokenizers[name], ["the", "\u200d", "cat"])
    assert name != "bert" or spelled[1] == ([UNK], 0)
    assert spelled[2] == spell_words(tokenizers[name], ["the", "cat"])[1]


def own_piece(word: Spelled, causal: bool) -> int:
    return word.ids[-1] if causal else word.ids[word.first]


@every_tokenizer
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("longest", [8, 11, 997])
def test_windows_lose_no_word_and_show_each_at_its_own_piece(tokenizers, name, causal, longest):
    words = WORDS * 7
    spelled = spell_words(tokenizers[name], words)
    rows = rows_of_words(tokenizers[name], words, longest, causal=causal)
    assert [word for row in rows for word, _ in row.places] == list(range(len(words)))
    for ids, places in rows:
        assert len(ids) <= longest
        assert (ids[0], ids[-1]) == (BOS, EOS)
        assert [ids[place] for _, place in places] == [own_piece(spelled[word], causal) for word, _ in places]
    assert (len(rows) == 1) == (longest == 997)


def test_a_word_in_the_middle_of_two_windows_has_context_on_either_side(tokenizers):
    rows = rows_of_words(tokenizers["word"], ["cat"] * 83, 22, causal=False)
    inner = [place for row in rows[1:-1] for _, place in row.places]
    assert min(inner) >= 6
    assert max(inner) <= 15


def test_no_words_are_an_empty_row(tokenizers):
    assert rows_of_words(tokenizers["bpe"], [], 8, causal=False) == [([BOS, EOS], [])]
