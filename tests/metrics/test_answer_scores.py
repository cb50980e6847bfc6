"""Answers are compared as the scripts of SQuAD and MLQA compare them."""

import pytest

from heedful.errors import InputError
from heedful.metrics.answers import answer_f1, exact_match


@pytest.mark.parametrize(
    "answer", ["Denver Broncos", "the denver  broncos.", "The Denver, Broncos!", "An a Denver Broncos"]
)
def test_case_articles_punctuation_and_space_do_not_count_in_english(answer):
    assert exact_match(answer, ["Denver Broncos"]) == 1.0
    assert answer_f1(answer, ["Denver Broncos"]) == 1.0


def test_articles_are_whole_words_and_only_ascii_punctuation_goes():
    assert exact_match("theatre", ["atre"]) == 0.0
    assert exact_match("Denver–Broncos", ["DenverBroncos"]) == 0.0
    assert exact_match("Denver-Broncos", ["DenverBroncos"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "f1"),
    [
        ("the big red dog", "a red dog", 0.8),  # big red dog, red dog: P 2/3, R 1
        ("dog dog", "dog", 2 / 3),  # a bag: the second one is not met
        ("red dog", "dog red", 1.0),
        ("cat", "dog", 0.0),
        ("the", "a", 1.0),  # neither has a token
        ("the", "dog", 0.0),
    ],
)
def test_f1_is_that_of_bags_of_tokens(answer, reference, f1):
    assert answer_f1(answer, [reference]) == pytest.approx(f1)
    assert answer_f1(reference, [answer]) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "reference", "f1", "exact"),
    [
        ("308分", "308 分。", 1.0, 1.0),
        ("《黑豹队》", "黑豹队", 1.0, 1.0),
        ("黑豹队", "黑豹", 0.8, 0.0),  # P 2/3, R 1
        ("豹黑", "黑豹", 1.0, 0.0),
        ("NFL联盟", "nfl 联盟", 1.0, 1.0),  # a Latin word is one token: 3 in all
        ("NFL", "NF联", 0.0, 0.0),
        ("的", "the的", 2 / 3, 0.0),  # articles of English are words here
    ],
)
def test_chinese_is_compared_by_characters_and_other_words(answer, reference, f1, exact):
    assert answer_f1(answer, [reference], "zh") == pytest.approx(f1)
    assert exact_match(answer, [reference], "zh") == exact


def test_the_best_reference_counts():
    references = ["cat", "red dog", "the big red dog"]
    assert answer_f1("big dog", references) == pytest.approx(0.8)
    assert exact_match("red dog", references) == 1.0
    assert exact_match("big dog", references) == 0.0


@pytest.mark.parametrize("score", [exact_match, answer_f1])
def test_where_there_is_no_answer_none_must_be_given(score):
    assert [score("", []), score("dog", []), score("", ["dog"]), score(".", [])] == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("score", [exact_match, answer_f1])
def test_a_language_that_cannot_be_compared_is_refused(score):
    with pytest.raises(InputError, match='answers in "ja" cannot be compared; known languages: en, zh'):
        score("x", ["x"], "ja")
