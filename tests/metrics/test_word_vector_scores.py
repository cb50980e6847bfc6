import gzip
import math
import re

import numpy as np
import pytest

from heedful.data.word_vectors import VectorSpace, VectorTable
from heedful.errors import InputError
from heedful.metrics.word_vectors import analogy_scores, read_analogies, read_judgements, similarity_score

WORDS = ["king", "queen", "man", "woman", "uncle", "aunt"]
MATRIX = np.array([[2, 2, 0], [2, 0, 2], [0, 3, 0], [0, 0, 3], [1, 3, 0], [1, 0, 3]], np.float32)
SPACE = VectorSpace(VectorTable(WORDS, MATRIX))


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n# Word 1\tWord 2\tHuman (mean)\nking\tqueen\t7.5\nman\tking\t3\n",  # WordSim-353
        "word1\tword2\tSimLex999\nking\tqueen\t7.5\textra\nman\tking\t3\n\n",
        "king queen 7.5\nman king 3\n",  # MEN
        "Word1,Word2,Mean\nking,queen,7.5\nman,king,3\n",
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\nking\tqueen\tN\t7.5\t2\nman\tking\tN\t3\t5\n",
        "Word 1,Word 2,Human (mean),1,2\nking,queen,7.50,7,8\nman,king,3.00,2,4\n",
    ],
    ids=["comments", "names of columns", "spaces", "commas", "parts of speech", "judges by number"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_judgements_are_read_from_every_format(text, packed, tmp_path):
    path = tmp_path / ("pairs.gz" if packed else "pairs")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert read_judgements(path) == [("king", "queen", 7.5), ("man", "king", 3.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("king queen 7.5\nman king\n", "line 2: not two words and a number"),
        ("king queen 7.5\nman king many\n", "line 2: not two words and a number"),
        ("king queen 7.5\nman king nan\n", "line 2: not two words and a number"),
        ("king,queen,7.5\nman,king,,3\n", "line 2: not two words and a number"),
        ("a,b,c\nking,queen,x7.5\nman,king,3\n", "line 2: not two words and a number"),
        ("# nothing\n", "has no pairs"),
    ],
)
def test_judgements_that_cannot_be_read_are_told_with_their_line(text, message, tmp_path):
    (tmp_path / "pairs").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_judgements(tmp_path / "pairs")


def test_vectors_that_agree_with_people_correlate_and_other_words_are_not_counted(tmp_path):
    (tmp_path / "pairs").write_text("king queen 5\nMan king 7\nman woman 1\nking london 9\n")
    score = similarity_score(SPACE, read_judgements(tmp_path / "pairs"))
    assert score.correlation == pytest.approx(1.0)
    assert (score.covered, score.pairs) == (3, 4)


def test_one_covered_pair_is_too_few_for_a_correlation(tmp_path):
    (tmp_path / "pairs").write_text("king queen 5\nrome london 7\n")
    score = similarity_score(SPACE, read_judgements(tmp_path / "pairs"))
    assert math.isnan(score.correlation)
    assert score.covered == 1


def test_analogies_are_counted_by_section(tmp_path):
    lines = [": family", "man king woman queen", "Man uncle woman aunt", ": capitals", "man rome woman london"]
    (tmp_path / "questions").write_text("\n".join([*lines, "man king woman aunt", ""]))
    family, capitals = analogy_scores(SPACE, read_analogies(tmp_path / "questions"))
    assert (family.section, family.right, family.covered, family.questions) == ("family", 2, 2, 2)
    assert family.accuracy == 1.0
    assert (capitals.right, capitals.covered, capitals.questions) == (0, 1, 2)
    few = list(analogy_scores(SPACE, read_analogies(tmp_path / "questions"), among=4))
    assert [score.covered for score in few] == [1, 0]
    assert math.isnan(few[1].accuracy)


@pytest.mark.parametrize(
    ("text", "message"),
    [(": a\na b c\n", "line 2: 3 words, but an analogy has four"), (": a\n", "has no analogies")],
)
def test_analogies_that_cannot_be_read_are_told_with_their_line(text, message, tmp_path):
    (tmp_path / "questions").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_analogies(tmp_path / "questions")
