"""Constituency trees of scenes: the words of the English sentence in its order, in brackets that form one tree."""

import pytest

from heedful.corpora.scenes import generate
from heedful.metrics.trees import constituents


@pytest.fixture(scope="module")
def corpus():
    return list(generate("en-tree", 2000, seed=7))


def test_without_brackets_a_tree_is_the_sentence(corpus):
    for pair in corpus:
        words = [word for word, role in zip(pair.target.words, pair.target.roles, strict=True) if role != "bracket"]
        assert " ".join(words).lower() == " ".join(pair.source.words).lower()


def test_the_brackets_form_a_tree_without_empty_constituents(corpus):
    for pair in corpus:
        tree = constituents(pair.target.text)
        assert tree is not None, pair.target.text
        spans, words = tree
        assert [word.lower() for word in words] == [word.lower() for word in pair.source.words]
        assert all(begin < end for _, begin, end in spans)
        roots = [label for label, begin, end in spans if (begin, end) == (0, len(words))]
        assert set(roots) <= {"S", "SQ", "SBARQ"}


def test_every_label_occurs(corpus):
    trees = [constituents(pair.target.text) or pytest.fail(pair.target.text) for pair in corpus]
    labels = {label for spans, _ in trees for label, *_ in spans}
    assert labels == {"S", "SQ", "SBARQ", "SBAR", "NP", "VP", "PP", "ADJP", "ADVP", "WHNP", "WHADVP"}


def test_every_word_is_aligned_with_itself(corpus):
    for pair in corpus:
        words = [index for index, role in enumerate(pair.target.roles) if role != "bracket"]
        for source, target in enumerate(words):
            assert (source, target) in pair.alignment


@pytest.mark.parametrize(
    ("english", "tree"),
    [
        ("Who has met Maria at the station?", "(SBARQ (WHNP who) (VP has met (NP Maria) (PP at (NP the station))) ?)"),
        (
            "Where is his child helping my aunt?",
            "(SBARQ (WHADVP where) (SQ is (NP his child) (VP helping (NP my aunt))) ?)",
        ),
        (
            "Tom says that his meat was fresh.",
            "(S (NP Tom) (VP says (SBAR that (S (NP his meat) (VP was (ADJP fresh))))) .)",
        ),
        ("There are four lions on the bridge.", "(S (NP there) (VP are (NP four lions) (PP on (NP the bridge))) .)"),
        (
            "Every day Tom chases the mice.",
            "(S (ADVP every day) (NP Tom) (VP chases (NP the mice)) .)",
        ),
    ],
)
def test_trees_are_those_of_the_penn_treebank(english, tree):
    trees = {pair.source.text: pair.target.text for pair in generate("en-tree", 60, seed=5)}
    assert trees[english] == tree


def test_a_relative_clause_is_part_of_its_noun_phrase(corpus):
    for pair in corpus:
        if "relativizer" in pair.source.roles:
            assert "(NP (NP" in pair.target.text
            assert "(SBAR (WHNP" in pair.target.text
