"""Word and character error rate, beside the textbook's table of edits."""

import random
import sys

import pytest

from heedful.errors import InputError
from heedful.metrics.texts import character_errors, edit_distance, error_rate, word_errors


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
