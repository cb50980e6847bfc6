"""ROUGE and distinct-n by the examples of the papers and exhaustive search; error rates by the textbook's table."""

import random
import sys
from collections import Counter
from itertools import combinations

import pytest

from heedful.errors import InputError
from heedful.metrics.texts import (
    character_errors,
    distinct_n,
    edit_distance,
    error_rate,
    rouge_l,
    rouge_lsum,
    rouge_n,
    sentence_counts,
    word_errors,
)

POLICE = "police killed the gunman"


@pytest.mark.parametrize(
    ("summary", "l_score", "two_score"),
    [("police kill the gunman", 3 / 4, 1 / 3), ("the gunman kill police", 1 / 2, 1 / 3)],
)
def test_the_examples_of_the_paper(summary, l_score, two_score):  # Lin 2004, section 3.1
    assert rouge_l(summary, POLICE).f1 == pytest.approx(l_score)
    assert rouge_n(summary, POLICE, 2).f1 == pytest.approx(two_score)


def test_the_union_of_the_paper():  # Lin 2004, section 3.2: LCS_union = w1 w2 w3 w5, of five words
    tally = rouge_lsum("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5")
    assert tally.recall == pytest.approx(4 / 5)
    assert tally.precision == pytest.approx(4 / 10)


def test_a_token_is_not_met_more_often_than_either_text_has_it():
    assert rouge_lsum("a", "a b\na c").correct == 1
    assert rouge_lsum("a\na", "a").correct == 1
    assert rouge_n("a a a", "a b", 1) == (1, 3, 2)


def test_of_several_longest_subsequences_it_is_the_one_of_rouge_score():
    assert rouge_lsum("a b\na", "a a").correct == 2  # in rouge-score 0.1.2; the other choice would give 1


@pytest.mark.parametrize(
    ("output", "reference", "counts"),
    [
        ("He slept. She ran.", "She ran. He slept.", (2, 2, 2)),
        ("He slept. He slept.", "He slept. She ran. He sang.", (1, 2, 3)),
        ("He  slept.  Did she run? No!", "Did she run? No!", (2, 3, 2)),
        ("他睡了。她跑了吗？没有！", "她跑了吗？他睡了。", (2, 3, 2)),
        ("The 2.5 m tall king slept", "The 2.5 m tall king slept.", (0, 1, 1)),
        ("", "He slept.", (0, 0, 1)),
    ],
)
def test_sentences_are_counted_in_any_order(output, reference, counts):
    assert sentence_counts(output, reference) == counts


def texts(draw, count):
    return [" ".join(draw.choices("abcd", k=draw.randint(0, 7))) for _ in range(count)]


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(token in rest for token in part)


def longest(first, second):
    """The length of the longest common subsequence, by trying all."""
    sizes = range(len(first), -1, -1)
    return next(size for size in sizes if any(is_subsequence(part, second) for part in combinations(first, size)))


def test_the_longest_common_subsequence_equals_an_exhaustive_search():
    draw = random.Random(3)
    for _ in range(101):
        ours, theirs = texts(draw, 2)
        a, b = ours.split(), theirs.split()
        assert rouge_l(ours, theirs) == (longest(a, b), len(a), len(b))
        assert rouge_lsum(ours, theirs) == rouge_l(ours, theirs)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_shared_n_grams_equal_a_count(n):
    draw = random.Random(n)
    for _ in range(53):
        ours, theirs = texts(draw, 2)
        grams = [[tuple(t.split()[i : i + n]) for i in range(len(t.split()) - n + 1)] for t in (ours, theirs)]
        left = list(grams[1])
        for gram in grams[0]:
            if gram in left:
                left.remove(gram)
        assert rouge_n(ours, theirs, n) == (len(grams[1]) - len(left), len(grams[0]), len(grams[1]))


def test_sentences_are_lines_only_for_the_summary_score():
    assert rouge_l("b\na", "a\nb").correct == 1
    assert rouge_lsum("b\na", "a\nb").correct == 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's a well-known 3.5% FACT_x.", "it s a well known 3 5 fact x"),
        ("我爱NLP，真的。", "我 爱 nlp 真 的"),
        ("Über das Café", "über das café"),
    ],
)
def test_tokens_are_words_and_chinese_characters(text, tokens):
    count = len(tokens.split())
    assert rouge_l(text, tokens) == (count, count, count)


def test_varied_dialogue_has_many_different_n_grams():
    replies = ["I do not know", "I do not", "know"]
    assert distinct_n(replies, 1) == pytest.approx(4 / 8)
    assert distinct_n(replies, 2) == pytest.approx(3 / 8)
    assert distinct_n(["我 不知道"], 2) == pytest.approx(3 / 4)
    assert distinct_n(["", "!"], 1) == 0.0
    words = [word for text in replies for word in text.lower().split()]
    assert distinct_n(replies, 1) == len(Counter(words)) / len(words)


def plain_distance(output, reference) -> int:
    """The table of Wagner & Fischer (1974), cell by cell."""
    table = [[i + j for j in range(len(reference) + 1)] for i in range(len(output) + 1)]
    for i in range(1, len(output) + 1):
        for j in range(1, len(reference) + 1):
            changed = table[i - 1][j - 1] + (output[i - 1] != reference[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, changed)
    return table[-1][-1]


def rate(errors) -> float:
    return error_rate(*errors.sum(axis=0).tolist())


def test_the_distance_is_that_of_the_textbook():
    chance = random.Random(3)
    for _ in range(200):
        output, reference = ("".join(chance.choices("abc", k=chance.randrange(9))) for _ in range(2))
        assert edit_distance(output, reference) == plain_distance(output, reference)
    assert edit_distance("kitten", "sitting") == 3


def test_without_rapidfuzz_the_extra_that_has_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(InputError, match=r"pip install 'heedful\[audio\]'"):
        word_errors(["a"], ["b"])


def test_a_rate_is_of_all_edits_over_all_words_of_the_references():
    outputs, references = ["one two", "a b c d"], ["one too two", "a b c e"]
    assert rate(word_errors(outputs, references)) == 2 / 7
    assert rate(character_errors(["ab  d"], ["ab cd"])) == 1 / 5  # two spaces count as one
    assert rate(word_errors(["much more than was said"], ["no"])) == 5  # more than 1: edits outnumber the words
    assert rate(word_errors([""], ["said nothing"])) == 1


def test_case_and_punctuation_count():
    assert rate(word_errors(["And so,"], ["and so"])) == 1


@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [(["a"], ["a", "b"], "1 outputs for 2 references"), (["a"], [" "], "there are no words in the references")],
)
def test_there_is_a_reference_for_each_output_and_something_in_it(outputs, references, message):
    with pytest.raises(InputError, match=message):
        word_errors(outputs, references)
