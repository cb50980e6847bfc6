"""`heedful search` and `heedful encode`: what the library finds, and one message for each mistake."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from invocation import invoke
from safetensors import safe_open

import heedful
from heedful.architectures import SentenceEncoder, weights
from heedful.checkpoint import write_model
from heedful.config.schema import CorpusConfig, DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors.retriever import Retriever, write_index
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(23)]
LINES = [f"w{i} w{(5 * i) % 23}" for i in range(17)]

run = partial(invoke, "search")
encode = partial(invoke, "encode")


def make_model(folder: Path, seed: int = 1) -> Path:
    torch.manual_seed(seed)
    config = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1)
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    corpus = CorpusConfig(source="faq.csv", source_field="question", target_field="answer")
    recipe = Recipe(task="ranking", model=config, data=DataConfig(max_length=13, train=(corpus,)))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(SentenceEncoder(config, len(tokenizer))))
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a corpus, in which commands run."""
    monkeypatch.chdir(tmp_path)
    make_model(tmp_path / "model")
    (tmp_path / "corpus").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path


OPTIONS = ("--model", "model", "--corpus", "corpus")


def shown(ranked):
    rank, hit = ranked
    return f"{rank:>3}  {hit.score:7.4f}  {hit.text}\n"


def test_a_line_is_a_rank_a_score_and_a_text(place):
    queries = ["w3 w5", "w7"]
    found = heedful.load("model", "cpu").search(queries, LINES, k=3)
    expected = "\n".join("".join(map(shown, enumerate(hits, start=1))) for hits in found)
    assert run(*OPTIONS, "--count", 3, *queries).stdout == expected
    assert run(*OPTIONS, "--count", 3, stdin="w3 w5\nw7\n").stdout == expected


def test_json_tells_the_line(place):
    [line] = run(*OPTIONS, "--json", "--count", 2, LINES[11]).stdout.splitlines()
    first, second = json.loads(line)
    assert first == {"rank": 1, "score": pytest.approx(1), "line": 12, "text": LINES[11]}
    assert (second["rank"], second["text"]) == (2, LINES[second["line"] - 1])


def test_an_index_is_made_once_and_used(place, monkeypatch):
    first = run(*OPTIONS, "--index", "index", "w3").stdout
    asked = []
    honest = Retriever.vectors

    def count(self, texts, *rest):
        asked.append(texts := list(texts))
        return honest(self, texts, *rest)

    monkeypatch.setattr(Retriever, "vectors", count)
    assert run(*OPTIONS, "--index", "index", "w3").stdout == first == run(*OPTIONS, "w3").stdout
    assert asked == [["w3"], LINES, ["w3"]]


def test_without_an_option_nothing_is_kept(place):
    run(*OPTIONS, "w3")
    assert sorted(path.name for path in place.iterdir()) == ["corpus", "model"]


def test_an_index_of_another_corpus_or_model_is_refused(place):
    run(*OPTIONS, "--index", "index", "w3")
    (place / "corpus").write_text("w3\n")
    with pytest.raises(InputError, match="index: was built for a different corpus; delete it"):
        run(*OPTIONS, "--index", "index", "w3")
    make_model(place / "model", seed=2)
    with pytest.raises(InputError, match="was built for a different model and a different corpus"):
        run(*OPTIONS, "--index", "index", "w3")


def test_blank_lines_are_left_out_and_counted(place):
    (place / "corpus").write_text("".join(f"{line}\n \n\n" for line in LINES))
    result = run(*OPTIONS, "--json", "--count", 40, LINES[11])
    found = json.loads(result.stdout)
    assert {hit["text"] for hit in found} == set(LINES)
    assert found[0]["line"] == 3 * 11 + 1
    assert result.stderr == "heedful: corpus: 34 blank lines are left out\n"


def test_an_index_with_blank_lines_is_made_again(place):
    (place / "corpus").write_text("w3\n\nw5\n")
    run(*OPTIONS, "--index", "index", "w3")
    with safe_open("index", "numpy") as index:
        sources = {name: index.metadata()[name] for name in ("model", "corpus")}
        write_index(Path("index"), index.get_tensor("vectors")[[0, 0, 1]], sources)
    with pytest.raises(InputError, match="index: was built with the blank lines of corpus; delete it"):
        run(*OPTIONS, "--index", "index", "w3")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_corpus_is_refused(place, content):
    (place / "corpus").write_text(content)
    with pytest.raises(InputError, match="corpus: has no text to search"):
        run(*OPTIONS, "w3")


def test_vectors_are_written_as_json_or_as_an_array(place):
    vectors = heedful.load("model", "cpu", engine="auto").encode(LINES)
    lines = encode("--model", "model", "--input", "corpus").stdout.splitlines()
    assert [json.loads(line) for line in lines] == vectors.tolist()
    for name in ("v.npy", "v.npz", "v.jsonl"):
        assert encode("--model", "model", "--input", "corpus", "--output", name).stdout == ""
    np.testing.assert_array_equal(np.load("v.npy", allow_pickle=False), vectors)
    with np.load("v.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["vectors"], vectors)
    assert (place / "v.jsonl").read_text().splitlines() == lines


def test_an_empty_text_has_a_vector_and_a_warning(place):
    (place / "some").write_text("w3 w5\n\nw7\n")
    for options in ((), ("--output", "v.npy")):
        result = encode("--model", "model", "--input", "some", *options)
        assert "empty texts, whose results are meaningless: 1 of 3 (line 2)" in result.stderr
    assert "empty texts" not in encode("--model", "model", "w3").stderr


def test_a_format_that_nobody_knows_is_refused(place):
    with pytest.raises(InputError, match=r"--output v\.txt: .* must end in \.jsonl, \.npy or \.npz"):
        encode("--model", "model", "--input", "corpus", "--output", "v.txt")


def write_table(place, queries):
    """A table with a query beside each line."""
    rows = "".join(f'{query},"{line}"\n' for query, line in zip(queries, LINES, strict=True))
    (place / "faq.csv").write_text(f"question,answer\n{rows}")


def test_of_tables_the_columns_of_the_recipe_are_read(place):
    queries = [f"w{i % 5} w7" for i in range(17)]
    write_table(place, queries)
    (place / "queries").write_text("\n".join(queries))
    expected = run(*OPTIONS, "--count", 3, "--input", "queries").stdout
    table = ["--model", "model", "--corpus", "faq.csv", "--count", 3]
    assert run(*table, "--input", "faq.csv").stdout == expected
    [line] = run(*table, "--json", LINES[11]).stdout.splitlines()
    assert json.loads(line)[0] == {"rank": 1, "score": pytest.approx(1), "line": 13, "text": LINES[11]}
    for options, texts in (([], queries), (["--source-field", "answer"], LINES)):
        found = encode("--model", "model", "--input", "faq.csv", *options).stdout.splitlines()
        assert [json.loads(vector) for vector in found] == heedful.load("model", "cpu", engine="auto").encode(
            texts
        ).tolist()


def test_an_index_of_another_column_is_refused(place):
    write_table(place, ["w1"] * 17)
    table = ["--model", "model", "--corpus", "faq.csv", "--index", "index"]
    first = run(*table, "w3").stdout
    assert run(*table, "w3").stdout == first
    with pytest.raises(InputError, match="index: was built for a different corpus; delete it"):
        run(*table, "--target-field", "question", "w3")


def test_a_column_of_what_is_no_table_is_refused(place):
    with pytest.raises(InputError, match=r"columns were given \(answer\), but --corpus \S+ is not a table"):
        run(*OPTIONS, "--target-field", "answer", "w3")
    with pytest.raises(InputError, match=r"columns were given \(answer\), but --input corpus is not a table"):
        encode("--model", "model", "--input", "corpus", "--source-field", "answer")


def test_every_text_and_query_is_counted(place, reporters):
    run(*OPTIONS, "w3", "w5 w7", "w11")
    encode("--model", "model", "--input", "corpus", "--output", "v.npy")
    encode("--model", "model", "--input", "corpus")
    found = [(reporter.work, reporter.total, reporter.done) for reporter in reporters]
    assert found == [("encoding corpus", 17, 17), ("searching", 3, 3), ("encoding", 17, 17), ("encoding", 17, 17)]


MISTAKES = {
    "nothing: no such file": ("--model", "model", "--corpus", "nothing", "w3"),
    "texts were given together with --input": (*OPTIONS, "w3", "--input", "corpus"),
    "--index no/index: there is no folder no; create it": (*OPTIONS, "w3", "--index", "no/index"),
    "use it with `heedful translate`. Text vectors need a model for the task": (
        "--model",
        "en-de",
        *OPTIONS[2:],
        "w3",
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_message(place, message):
    with pytest.raises(InputError, match=message):
        run(*MISTAKES[message])


def test_another_model_is_sent_to_its_command(place):
    with pytest.raises(InputError, match="is a ranking model; use it with `heedful search`"):
        invoke("write", "--model", "model", "w3")
