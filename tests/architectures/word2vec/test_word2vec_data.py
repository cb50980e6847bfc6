from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.architectures.word2vec.data import frequent_words, prepare_words, word_numbers, words_of
from heedful.config.load import make_recipe
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.tokenizer import EOS
from heedful.text.words import split_words

CUT = TokenizerConfig(kind="word", byte_fallback=False, lowercase=True)


def recipe_for(tmp_path, text, vocab_size=31, **model):
    (tmp_path / "text.txt").write_text(text)
    values = {
        "task": "word_vectors",
        "data": {"train": [{"source": "text.txt"}], "documents": "line"},
        "tokenizer": {"vocab_size": vocab_size},
        "model": model,
    }
    return make_recipe(values, data_root=tmp_path)


def prepared(recipe, folder):
    data = prepare_words(recipe, recipe.model, folder, lambda _: None)
    names = {i: word for word, i in word_numbers(data.tokenizers.source).items()} | {EOS: "."}
    return [names[i] for i in data.train[0].ids.tolist()], data


def test_words_are_numbered_by_frequency_and_rare_ones_are_left_out(tmp_path):
    text = "The cat, the dog!\nThe dog sees the cat... seldom\n"
    words, data = prepared(recipe_for(tmp_path, text, vocab_size=7), tmp_path / "data")
    assert words == ["the", "cat", "the", "dog", ".", "the", "dog", "the", "cat", "."]
    assert word_numbers(data.tokenizers.source) == {"the": 4, "cat": 5, "dog": 6}


def test_prepared_words_are_used_again_unless_the_phrases_change(tmp_path):
    recipe = recipe_for(tmp_path, "new york is in new york\n" * 7)
    said = []
    for asked in (recipe, recipe, replace(recipe, model=replace(recipe.model, phrases=(0.5,), phrase_discount=1))):
        prepare_words(asked, asked.model, tmp_path / "data", said.append)
    assert [line for line in said if "prepared earlier" in line] == [
        f"{tmp_path / 'data'}: using the data prepared earlier"
    ]


def test_phrases_are_words_of_the_vocabulary(tmp_path):
    text = "new york is large\na new car is in york\n" * 7 + "new york\n" * 9
    words, _ = prepared(recipe_for(tmp_path, text, phrases=[1.0], phrase_discount=7), tmp_path / "data")
    assert words[:11] == ["new_york", "is", "large", ".", "a", "new", "car", "is", "in", "york", "."]


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_is_cut_as_all_other_text_is(text):
    assert words_of(text, CUT) == [word for word in split_words(text.lower()) if word[0].isalnum()]


def test_words_are_cut_without_punctuation_unless_the_text_is_tokenized():
    assert words_of("Don't say: «Küche» 猫狗 3 times", CUT) == ["don", "t", "say", "küche", "猫", "狗", "3", "times"]
    assert words_of("Do n't , twice", replace(CUT, pretokenized=True)) == ["do", "n't", ",", "twice"]


def test_words_are_normalised_as_the_recipe_says():
    text = "caf\N{LATIN SMALL LETTER E WITH ACUTE} cafe\N{COMBINING ACUTE ACCENT} \N{FULLWIDTH LATIN CAPITAL LETTER A}"
    assert len(set(words_of(text, replace(CUT, normalization="nfc")))) == 2
    assert words_of(text, replace(CUT, normalization="nfkc"))[-1] == "a"


def test_equally_frequent_words_are_in_the_order_of_code_points():
    tokenizer = frequent_words(Counter(["b", "a", "c", "b", "d", "a"]), replace(CUT, vocab_size=7))
    assert list(word_numbers(tokenizer)) == ["a", "b", "c"]
    assert tokenizer.encode("a c d") == [4, 6, 1]


def test_a_text_without_words_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no words"):
        prepared(recipe_for(tmp_path, "... !!!\n"), tmp_path / "data")


def test_words_with_characters_that_cannot_be_printed_are_kept(tmp_path):
    recipe = recipe_for(tmp_path, "می\u200cخواهم او\u00ad x او\u00ad\n")
    recipe = replace(recipe, tokenizer=replace(recipe.tokenizer, pretokenized=True))
    words, _ = prepared(recipe, tmp_path / "data")
    assert words == ["می\u200cخواهم", "او\u00ad", "x", "او\u00ad", "."]
