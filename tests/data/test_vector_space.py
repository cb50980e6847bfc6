import re

import numpy as np
import pytest

from heedful.data.word_vectors import VectorSpace, VectorTable
from heedful.errors import InputError

WORDS = ["king", "queen", "man", "woman", "paris"]
MATRIX = np.array([[2, 2, 0], [2, 0, 2], [0.5, 3, 0.1], [0.5, 0.1, 3], [9, 0, 0]], np.float32)
SPACE = VectorSpace(VectorTable(WORDS, MATRIX))


def test_similarity_is_the_cosine():
    assert SPACE.similarity("king", "queen") == pytest.approx(0.5)
    assert SPACE.similarity("king", "king") == pytest.approx(1.0)


def test_neighbours_come_in_order_and_without_the_word_itself():
    found = SPACE.nearest("king", 99)
    assert [word for word, _ in found] == ["man", "paris", "queen", "woman"]
    assert [similarity for _, similarity in found] == sorted((entry.similarity for entry in found), reverse=True)
    assert len(SPACE.nearest("king", 2)) == 2


def test_an_analogy_leaves_its_own_words_out():
    assert SPACE.analogy("king", "man", "woman", 1)[0].word == "queen"
    assert {word for word, _ in SPACE.analogy("king", "man", "woman", 99)} == {"queen", "paris"}


def test_many_analogies_have_the_answers_of_single_ones():
    questions = SPACE.rows(["man", "king", "woman", "king", "man", "queen"]).reshape(2, 3)
    single = [SPACE.analogy(b, a, c, 1)[0].word for a, b, c in (("man", "king", "woman"), ("king", "man", "queen"))]
    assert [WORDS[row] for row in SPACE.solve(questions)] == single
    assert SPACE.solve(questions, among=4).max() < 4
    assert SPACE.solve(np.zeros((0, 3), np.int64)).shape == (0,)


def test_a_word_is_found_in_lower_case_too():
    assert SPACE.row("Paris") == 4
    assert SPACE.find("london") is None


def test_a_word_without_a_vector_is_told_with_near_ones():
    with pytest.raises(InputError, match=re.escape('"kings" has no vector; did you mean "king"?')):
        SPACE.nearest("kings")


def test_a_vector_of_zeros_is_near_to_nothing():
    space = VectorSpace(VectorTable(["a", "b"], np.array([[0, 0], [1, 0]], np.float32)))
    assert space.similarity("a", "b") == 0
    assert space.nearest("a", 1)[0].similarity == 0


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_numbers_of_any_size_have_the_same_cosine(scale):
    space = VectorSpace(VectorTable(WORDS, MATRIX * np.float32(scale)))
    np.testing.assert_allclose(space.directions, SPACE.directions, rtol=1e-6)
