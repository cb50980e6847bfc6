import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.architectures.word2vec.data import huffman_codes


def codes(counts):
    tree = huffman_codes(np.array(counts))
    return ["".join(str(int(bit)) for bit in row[:n]) for row, n in zip(tree.branches, tree.lengths, strict=True)]


def test_the_codes_of_a_known_text_have_the_known_lengths():
    assert [len(code) for code in codes([45, 13, 12, 16, 9, 5])] == [1, 3, 3, 3, 4, 4]  # Cormen et al., figure 16.3


@given(st.lists(st.integers(1, 99), min_size=2, max_size=41))
def test_no_code_begins_another_and_together_they_fill_the_tree(counts):
    found = codes(counts)
    assert not any(a != b and b.startswith(a) for a in found for b in found)
    assert sum(2.0 ** -len(code) for code in found) == 1.0


@given(st.lists(st.integers(1, 99), min_size=2, max_size=41))
def test_frequent_words_have_no_longer_codes_than_rare_ones(counts):
    lengths = np.array([len(code) for code in codes(counts)])
    assert all(
        lengths[i] <= lengths[j] for i in range(len(counts)) for j in range(len(counts)) if counts[i] > counts[j]
    )


def test_words_share_the_nodes_above_them():
    tree = huffman_codes(np.array([0, 4, 2, 1]))
    assert tree.lengths.tolist() == [0, 1, 2, 2]
    root, inner = tree.nodes[2, :2]
    assert tree.nodes[1, 0] == tree.nodes[3, 0] == root
    assert tree.nodes[3, 1] == inner
    assert {int(root), int(inner)} == {0, 1}
    assert tree.branches[2, 1] != tree.branches[3, 1]


def test_a_single_word_has_nothing_to_decide():
    assert huffman_codes(np.array([0, 7])).lengths.tolist() == [0, 0]
