"""Vectors do not depend on their batch, and what is found is what is nearest."""

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from heedful.architectures import SentenceEncoder
from heedful.config.schema import DataConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.predictors import retriever as module
from heedful.predictors.retriever import Retriever, nearest, read_index, write_index
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(23)]


@pytest.fixture(scope="module")
def searcher():
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False))
    config = ModelConfig(
        family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=2, positions="learned", dropout=0.3
    )
    torch.manual_seed(1)
    return Retriever(SentenceEncoder(config, len(tokenizer)).train(), tokenizer, DataConfig(max_length=11))


def texts(count):
    rng = np.random.default_rng(count)
    return [" ".join(rng.choice(WORDS, rng.integers(0, 17))) for _ in range(count)]


def test_the_vector_of_a_text_does_not_depend_on_the_others(searcher, monkeypatch):
    lines = texts(37)
    whole = searcher.encode(lines)
    assert whole.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.concatenate([searcher.encode([line]) for line in lines]), whole, atol=1e-6)
    monkeypatch.setattr("heedful.predictors.text_predictor.FIRST_WINDOW", 3)
    monkeypatch.setattr("heedful.predictors.text_predictor.WINDOW", 5)
    done = []
    np.testing.assert_allclose(np.stack(list(searcher.encode_lines(lines, done.append))), whole, atol=1e-6)
    assert sum(done) == 37
    assert searcher.reader.model.training


def test_no_texts_have_no_vectors(searcher):
    assert searcher.encode([]).shape == (0, 14)
    assert searcher.search(["w1"], []) == [[]]


def test_a_search_finds_the_nearest_texts(searcher):
    lines, queries = texts(41), ["w3 w5", "w7"]
    found = searcher.search(queries, lines, k=7)
    cosines = searcher.encode(queries) @ searcher.encode(lines).T
    for hits, row in zip(found, cosines, strict=True):
        assert [hit.number for hit in hits] == sorted(range(41), key=lambda i: -row[i])[:7]
        assert [hit.text for hit in hits] == [lines[hit.number] for hit in hits]
        assert [hit.score for hit in hits] == pytest.approx([row[hit.number] for hit in hits])
    assert found[1][0].score <= 1.0 + 1e-6
    assert searcher.search(["w7"], ["w7"], 3)[0][0].score == pytest.approx(1)


def test_vectors_at_hand_are_used(searcher):
    vectors = searcher.encode(["w3", "w5"])[::-1]
    assert [hit.text for hit in searcher.search(["w5"], ["w3", "w5"], vectors=vectors)[0]] == ["w3", "w5"]


@pytest.mark.parametrize("block", [2, 3, 100])
def test_blocks_change_nothing_and_the_first_of_equals_comes_first(block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    vectors = np.array([[1, 0], [2, 0], [0, 5], [2, 0], [-1, 0], [2, 0]], np.float32)
    scores, places = nearest(np.array([[1, 0], [0, 1]], np.float32), vectors, 4)
    assert places.tolist() == [[1, 3, 5, 0], [2, 0, 1, 3]]
    assert scores.tolist() == [[2, 2, 2, 1], [5, 0, 0, 0]]
    assert nearest(vectors[:1], vectors, 11)[1].shape == (1, 6)


def test_many_equals_come_in_their_order():
    vectors = np.random.default_rng(5).integers(0, 3, (997, 1)).astype(np.float32)
    order = sorted(range(997), key=lambda i: -vectors[i, 0])
    assert nearest(np.ones((1, 1), np.float32), vectors, 503)[1].tolist() == [order[:503]]


MADE_OF = {"model": "m", "corpus": "c"}


@pytest.fixture
def index(tmp_path):
    write_index(tmp_path / "index", np.arange(35, dtype=np.float32).reshape(5, 7), MADE_OF)
    return tmp_path / "index"


def test_an_index_gives_its_vectors_back(index):
    np.testing.assert_array_equal(read_index(index, MADE_OF), np.arange(35).reshape(5, 7))
    assert [path.name for path in index.parent.iterdir()] == ["index"]


@pytest.mark.parametrize("name", ["model", "corpus"])
def test_an_index_of_something_else_is_refused(index, name):
    with pytest.raises(InputError, match=f"was built for a different {name}; delete it"):
        read_index(index, {**MADE_OF, name: "x"})


def test_a_changed_byte_of_an_index_is_noticed(index):
    data = bytearray(index.read_bytes())
    data[-3] ^= 16
    index.write_bytes(data)
    with pytest.raises(InputError, match="does not match its checksum"):
        read_index(index, MADE_OF)


@pytest.mark.parametrize(
    "strange",
    [lambda v: v.view(np.int32), lambda v: v.reshape(7, 5), lambda v: v.reshape(35), lambda v: v.reshape(5, 7, 1)],
    ids=["whole numbers", "another shape", "one dimension", "three dimensions"],
)
def test_the_bytes_of_an_index_read_in_another_way_are_refused(index, strange):
    with safe_open(index, framework="numpy") as file:
        facts, vectors = file.metadata(), file.get_tensor("vectors")
    save_file({"vectors": strange(vectors)}, index, facts)
    with pytest.raises(InputError, match="does not match its checksum"):
        read_index(index, MADE_OF)


def test_an_index_without_its_shape_is_read_as_before(index):
    with safe_open(index, framework="numpy") as file:
        facts, vectors = file.metadata(), file.get_tensor("vectors")
    save_file({"vectors": vectors}, index, {name: value for name, value in facts.items() if name != "shape"})
    np.testing.assert_array_equal(read_index(index, MADE_OF), vectors)


def test_an_index_holds_vectors_of_any_layout_and_type_as_they_are(tmp_path):
    vectors = np.arange(35, dtype=np.float64).reshape(7, 5).T
    write_index(tmp_path / "index", vectors, MADE_OF)
    np.testing.assert_array_equal(read_index(tmp_path / "index", MADE_OF), vectors)


@pytest.mark.parametrize("content", [b"", b"no index", bytes(101)])
def test_a_file_that_is_no_index_is_refused(tmp_path, content):
    (tmp_path / "index").write_bytes(content)
    with pytest.raises(InputError, match="is not a readable index"):
        read_index(tmp_path / "index", MADE_OF)


def test_an_index_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(RunError, match="cannot write"):
        write_index(tmp_path / "no" / "index", np.ones((1, 1), np.float32), MADE_OF)


def test_texts_that_are_cut_are_warned_of_once(searcher, caplog):
    searcher.reader.warned = False
    searcher.encode(["w1 w2", "w1 " * 13, "w2 " * 12])
    searcher.encode("w1 " * 13)
    assert [record.getMessage() for record in caplog.records] == [
        f"texts are truncated to the 11 tokens that the model reads: {('w1 ' * 13)[:40]!r}"
    ]
