"""Words of typed texts are cut as those of training data are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.text.words import SplitText, WordSplitter, special_words, split_words

NEWS = [
    "J.R.",
    "doesn't",
    "O'Brien",
    "U.S.",
    "Anna-Lena",
    "3,000",
    "Mr.",
    "5%",
    "well-known",
    "Bob",
    "lives",
    ".",
    ".",
    ",",
    "(",
    ")",
    "?",
    "--",
    "...",
    "'s",
]
CONLLU_COLUMNS = ["Bob", "does", "n't", "do", "'s", ",", ".", "``", "''", "well-known"]
MESSAGES = ["@ada", "#news", ":)", "don't", "lol", ".", "!"]
FRENCH = ["l'", "homme", "aujourd'hui", "c'", "est", ".", ","]
CHINESE = ["我", "住", "在", "北京", "上海", "。"]
JAPANESE = ["これ", "は", "ペン", "です", "日本語", "。"]

words_of_any_kind = st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), min_size=1)


@pytest.mark.parametrize(
    "words", [NEWS, CONLLU_COLUMNS, MESSAGES, FRENCH], ids=["news", "treebank", "messages", "French"]
)
def test_words_of_the_training_data_stay_whole(words):
    assert WordSplitter(special_words(words)).cut(" ".join(words)) == words


@settings(max_examples=100)
@given(words=words_of_any_kind)
def test_any_word_of_the_training_data_stays_whole_in_the_text_of_its_file(words):
    assert WordSplitter(special_words(words)).cut(" ".join(words)) == words


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (NEWS, "Bob doesn't live in the U.N.", ["Bob", "doesn't", "live", "in", "the", "U.N."]),
        (NEWS, "(Jean-Luc's U.S.A.), ok?", ["(", "Jean-Luc", "'s", "U.S.A.", ")", ",", "ok", "?"]),
        (NEWS, "Mr. Smith saw Bob.", ["Mr.", "Smith", "saw", "Bob", "."]),
        (NEWS, "DOESN'T he? Doesn't he? mr. Bob", ["DOESN'T", "he", "?", "Doesn't", "he", "?", "mr", ".", "Bob"]),
        (NEWS, "7% of 4,500--at 10:30", ["7%", "of", "4,500", "--", "at", "10", ":", "30"]),
        (CONLLU_COLUMNS, "They aren't Bob's.", ["They", "are", "n't", "Bob", "'s", "."]),
        (MESSAGES, "@eve, #cats!", ["@eve", ",", "#cats", "!"]),
        (FRENCH, "l'Italie, aujourd'hui.", ["l'", "Italie", ",", "aujourd'hui", "."]),
        (CHINESE, "我住在北京。", ["我", "住", "在", "北京", "。"]),
        (JAPANESE, "これは日本語です。", ["これ", "は", "日本語", "です", "。"]),
        (NEWS, "  ", []),
    ],
)
def test_other_texts_are_cut_in_the_same_way(words, text, expected):
    assert WordSplitter(special_words(words)).cut(text) == expected


@pytest.mark.parametrize("text", ["O'Brien (U.S.), don't! 北京 これ", ""])
def test_without_words_of_training_data_a_text_is_cut_at_every_mark(text):
    assert WordSplitter(()).cut(text) == split_words(text)


def test_only_words_that_a_text_does_not_show_are_kept_the_most_frequent_first():
    assert special_words(["Bob", "U.S.", "42", ".", "京", ".", "北京", "a_b"]) == (".", "U.S.", "北京")


@pytest.mark.parametrize("word", ["", " ", 3, None])
def test_a_given_word_is_a_string_that_is_not_empty(word):
    with pytest.raises(InputError, match="word 2 is"):
        SplitText(["Bob", word])
