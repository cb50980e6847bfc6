import json
import re
from pathlib import Path

import numpy as np
import pytest
from invocation import invoke

import heedful
from heedful.data.word_vectors import VectorTable, read_vectors, write_vectors
from heedful.errors import InputError
from heedful.predictors.word_vectors import WordVectors
from interrupted import train
from toy_vectors import toy_recipe

WORDS = ["king", "queen", "man", "woman", "paris"]
MATRIX = np.array([[2, 2, 0], [2, 0, 2], [0.5, 3, 0.1], [0.5, 0.1, 3], [9, 0, 0]], np.float32)


@pytest.fixture
def file(tmp_path) -> Path:
    write_vectors(tmp_path / "vectors.txt", VectorTable(WORDS, MATRIX), "word2vec")
    return tmp_path / "vectors.txt"


def test_neighbours_are_lines_of_cosine_and_word(file):
    lines = invoke("vectors", "nearest", "king", "paris", "--model", file, "--count", 2).stdout.splitlines()
    assert [line.split()[1:] for line in lines] == [["man"], ["paris"], [], ["king"], ["queen"]]
    assert float(lines[1].split()[0]) == pytest.approx(0.7071)


def test_neighbours_as_json_have_all_digits(file):
    found = json.loads(invoke("vectors", "nearest", "king", "--model", file, "--count", 1, "--json").stdout)
    assert found["word"] == "king"
    assert found["neighbours"][0]["word"] == "man"


def test_king_minus_man_plus_woman(file):
    lines = invoke("vectors", "analogy", "king", "man", "woman", "--model", file).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["queen", "paris"]
    assert (
        json.loads(invoke("vectors", "analogy", "king", "man", "woman", "--model", file, "--json").stdout)[0]["word"]
        == "queen"
    )


def test_answers_come_from_the_first_words_if_asked(file):
    lines = invoke("vectors", "analogy", "king", "man", "woman", "--among", 2, "--model", file).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["queen"]


def test_a_file_that_is_not_there_is_told_as_one():
    with pytest.raises(InputError, match=r"absent\.vec: no such file; give a file of word vectors"):
        invoke("vectors", "nearest", "king", "--model", "absent.vec")


def test_the_accuracy_on_a_file_of_analogies_is_told_by_section(file, tmp_path):
    questions = tmp_path / "questions.txt"
    questions.write_text(": family\nman king woman queen\n: capitals\nrome italy paris france\n")
    lines = invoke("vectors", "analogy", "--questions", questions, "--model", file).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["1.0000", "1", "of", "1", "family"],
        ["-", "0", "of", "1", "capitals"],
        ["1.0000", "1", "of", "2", "all"],
    ]
    rows = invoke("vectors", "analogy", "--questions", questions, "--model", file, "--json").stdout.splitlines()
    assert [json.loads(row)["accuracy"] for row in rows] == [1.0, None, 1.0]


def test_two_words_or_files_of_pairs_are_compared(file, tmp_path):
    assert invoke("vectors", "similarity", "king", "queen", "--model", file).stdout == "0.5000\n"
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("king\tqueen\t5\nman\tking\t7\nman\twoman\t1\nking\tlondon\t9\n")
    shown = invoke("vectors", "similarity", "--pairs", pairs, "--model", file).stdout
    assert shown.split() == ["1.0000", "3", "of", "4", str(pairs)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analogy"], "give either three words"),
        (["analogy", "king", "man"], "an analogy needs three words, A B C, but got 2; give three, or --questions FILE"),
        (["similarity"], "give either two words"),
        (["similarity", "king"], "give either two words"),
        (["nearest", "kings"], 'did you mean "king"?'),
        (["plot", "--out", "map.gif"], ".png or .svg"),
        (["plot", "king", "queen", "--out", "map.png"], "cannot span a plane"),
        (["plot", "king", "queen", "man", "--method", "tsne"], "t-SNE needs at least 5 vectors"),
        (["plot", "--method", "umap"], "choose one of pca, tsne"),
        (["export", "out", "--format", "npy"], "choose one of"),
    ],
)
def test_what_cannot_work_is_refused_with_the_remedy(arguments, message, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(message)):
        invoke("vectors", *arguments, "--model", file)


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("name", ["map.png", "map.svg"])
def test_words_are_drawn_in_the_plane_the_same_every_time(name, method, file, tmp_path):
    pictures = [tmp_path / f"{number}-{name}" for number in range(2)]
    for picture in pictures:
        invoke("vectors", "plot", "--model", file, "--out", picture, "--method", method)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    if name.endswith("svg"):
        assert "</svg>" in pictures[0].read_text()


@pytest.mark.parametrize("form", ["word2vec", "binary", "glove", "fasttext"])
def test_vectors_are_written_for_other_programs(form, file, tmp_path):
    invoke("vectors", "export", tmp_path / "out", "--model", file, "--format", form)
    np.testing.assert_array_equal(read_vectors(tmp_path / "out").matrix, MATRIX)


def test_a_trained_model_is_asked_by_its_folder(tmp_path):
    recipe = toy_recipe(tmp_path)
    train(recipe, tmp_path / "run")
    vectors = heedful.load(tmp_path / "run", task="word_vectors")
    assert isinstance(vectors, WordVectors)
    assert vectors("king").shape == (13,)
    assert vectors(["king", "queen"]).shape == vectors.encode(["king queen", "fruit"]).shape == (2, 13)
    assert vectors.nearest("king", 3) == vectors.space.nearest("king", 3)
    lines = invoke("vectors", "nearest", "king", "--model", tmp_path / "run", "--count", 3).stdout.splitlines()
    assert [line.split()[1] for line in lines] == [word for word, _ in vectors.nearest("king", 3)]
    assert (
        invoke("vectors", "export", tmp_path / "out.bin", "--model", tmp_path / "run", "--format", "binary").exit_code
        == 0
    )
    table = read_vectors(tmp_path / "out.bin")
    assert table.words == vectors.space.words
    np.testing.assert_array_equal(table.matrix, vectors.space.matrix)


def test_a_model_of_another_task_has_no_word_vectors():
    with pytest.raises(InputError, match="heedful translate"):
        invoke("vectors", "nearest", "king", "--model", "en-de")
