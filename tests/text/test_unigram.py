import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.training import Lattice, _most_frequent, train_unigram

PIECES = ["a", "b", "c", "ab", "bc", "abc", "ca", "aa"]
SCORES = np.log(np.array([0.19, 0.13, 0.11, 0.23, 0.07, 0.05, 0.17, 0.05]))

words_of_abc = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 5), min_size=1, max_size=7)


def spellings(text):
    """Every way to spell a text, found by trying."""
    if not text:
        return [[]]
    return [
        [number, *rest]
        for number, piece in enumerate(PIECES)
        if text.startswith(piece)
        for rest in spellings(text[len(piece) :])
    ]


@given(words_of_abc)
def test_expected_counts_are_those_over_all_spellings(words):
    expected = np.zeros(len(PIECES))
    for word, count in words.items():
        found = spellings(word)
        weights = [math.exp(sum(SCORES[i] for i in spelling)) for spelling in found]
        for spelling, weight in zip(found, weights, strict=True):
            for i in spelling:
                expected[i] += count * weight / sum(weights)
    lattice = Lattice.of(list(words), PIECES)
    counts = np.array(list(words.values()), dtype=np.float64)
    np.testing.assert_allclose(lattice.expected_counts(SCORES, counts), expected, rtol=1e-12)


@given(words_of_abc)
def test_the_best_score_is_that_of_the_best_spelling(words):
    best = [max(sum(SCORES[i] for i in spelling) for spelling in spellings(word)) for word in words]
    np.testing.assert_allclose(Lattice.of(list(words), PIECES).best_scores(SCORES), np.array(best), rtol=1e-12)


def test_a_piece_is_not_its_own_alternative():
    best = Lattice.of(PIECES, PIECES).without_whole_texts().best_scores(SCORES)
    score = dict(zip(PIECES, SCORES, strict=True))
    assert best[PIECES.index("abc")] == pytest.approx(score["ab"] + score["c"])
    assert best[PIECES.index("aa")] == pytest.approx(2 * score["a"])
    assert best[PIECES.index("b")] == score["b"]


def test_dead_pieces_spell_nothing():
    alive = np.array([piece != "ab" for piece in PIECES])
    lattice = Lattice.of(["ab"], PIECES).restricted(alive)
    np.testing.assert_allclose(lattice.expected_counts(SCORES, np.array([3.0])), [3, 3, 0, 0, 0, 0, 0, 0])


@given(words_of_abc, st.integers(3, 11))
def test_a_vocabulary_holds_all_characters_and_no_more_than_asked(words, size):
    pieces = train_unigram(words, size)
    names = [piece for piece, _ in pieces]
    assert {character for word in words for character in word} <= set(names)
    assert len(set(names)) == len(names) <= size
    assert [score for _, score in pieces] == sorted((score for _, score in pieces), reverse=True)
    assert sum(math.exp(score) for _, score in pieces) == pytest.approx(1, abs=1e-4)


def test_frequent_words_become_pieces():
    words = Counter({" the": 29, " cat": 17, " sat": 13, " mat": 11, " on": 7, "s": 5, " cats": 3})
    names = [piece for piece, _ in train_unigram(words, 13)]
    assert {" the", " cat"} <= set(names)
    assert " cats" not in names


def test_the_order_of_the_words_does_not_matter(monkeypatch):
    words = {"abcab": 3, "bca": 3, "cab": 2, "aab": 2, "bc": 2}
    backwards = dict(reversed(words.items()))
    assert train_unigram(words, 7) == train_unigram(backwards, 7)
    monkeypatch.setattr("heedful.text.training.MAX_WORDS", 3)
    assert train_unigram(words, 7) == train_unigram(backwards, 7)


def test_of_equally_frequent_words_none_is_favoured_by_its_letters_and_all_characters_stay(monkeypatch):
    monkeypatch.setattr("heedful.text.training.MAX_WORDS", 50)
    words = {chr(0x4E00 + i) + chr(0x4E00 + (7 * i) % 100): 1 for i in range(100)}
    firsts = {word[0] for word in _most_frequent(words)}
    assert len(firsts) == 50
    assert max(firsts) > chr(0x4E00 + 90)
    pieces = {piece for piece, _ in train_unigram(words, 150)}
    assert {character for word in words for character in word} <= pieces
