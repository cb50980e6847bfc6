"""`heedful predict` on tables: the columns that the recipe names, one result a row, and what is odd about the texts."""

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from invocation import invoke
from torch import nn

from heedful.checkpoint import load_model, write_model
from heedful.config.schema import CorpusConfig, DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.models import TextClassifier, TokenClassifier, weights
from heedful.predict import Text
from heedful.predict.classifier import Classifier
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(23)]
TEXTS = [" ".join(WORDS[i : i + 2 + i % 4]) for i in range(17)]
TOKENIZER = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, segments=2)
TABLE = CorpusConfig(source="train.csv", source_field="Text", target_field="Label")


def write_classifier(folder: Path, corpus: CorpusConfig, max_length: int = 23) -> Path:
    """A classifier that has learned nothing from a corpus."""
    torch.manual_seed(1)
    data = DataConfig(train=(corpus,), labels=("no", "yes"), max_length=max_length)
    network = TextClassifier(MODEL, len(TOKENIZER), 2)
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    recipe = Recipe(task="classification", model=MODEL, data=data)
    write_model(folder, recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(network))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classifier(tmp_path / "model", TABLE)
    return tmp_path


def write_csv(file: str, rows: list[list[str]]) -> str:
    with Path(file).open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return file


def labels(texts: list[str] | list[Text], model: str = "model") -> str:
    return "".join(f"{answer.label}\n" for answer in load_model(model).use_as(Classifier).predict(texts))


def predict(*arguments: object) -> str:
    return invoke("predict", "--model", "model", *arguments).stdout


def test_a_table_like_the_training_table_has_a_result_for_each_row(here: Path) -> None:
    rows = [[text, "no", str(i)] for i, text in enumerate(TEXTS)]
    wanted = labels(TEXTS)
    assert len(set(wanted.split())) == 2
    assert predict("--input", write_csv("a.csv", [["Text", "Label", "id"], *rows])) == wanted
    assert predict("--input", write_csv("bare.csv", [["Text"], *([text] for text in TEXTS)])) == wanted
    Path("a.tsv").write_text("id\tText\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(TEXTS)))
    assert predict("--input", "a.tsv") == wanted
    objects = "".join(json.dumps({"Text": text, "Label": 1, "more": [i]}) + "\n" for i, text in enumerate(TEXTS))
    Path("a.jsonl.gz").write_bytes(gzip.compress(objects.encode()))
    assert predict("--input", "a.jsonl.gz") == wanted


def test_a_text_that_spans_lines_is_one(here: Path) -> None:
    texts = ["w1\nw2, w3", 'w4 "w5"', "w6"]
    assert predict("--input", write_csv("a.csv", [["Text"], *([text] for text in texts)])) == labels(texts)


def test_a_plain_file_is_a_text_a_line_whatever_stands_in_it(here: Path) -> None:
    Path("a.txt").write_text("Text,Label\nw1 w2,no\n")
    assert predict("--input", "a.txt") == labels(["Text,Label", "w1 w2,no"])
    Path("a").write_text("w1\tw2\nw3\n")
    assert predict("--input", "a") == labels([Text("w1", "w2"), Text("w3")])


def test_columns_can_be_named(here: Path) -> None:
    file = write_csv("a.csv", [["id", "body", "title"], *([str(i), text, "w0"] for i, text in enumerate(TEXTS))])
    with pytest.raises(InputError, match=r"a\.csv: no column is named 'Text'; .*'id', 'body', 'title'.*--source-field"):
        predict("--input", file)
    assert predict("--input", file, "--source-field", "body") == labels(TEXTS)
    assert predict("--input", file, "--source-field", "2") == labels(TEXTS)
    pairs = labels([Text("w0", text) for text in TEXTS])
    assert predict("--input", file, "--source-field", "title", "--pair-field", "body") == pairs
    with pytest.raises(InputError, match=r"columns are named \(body\), but there is no --input"):
        predict("w1 w2", "--source-field", "body")


def test_pairs_are_read_where_the_recipe_names_them(here: Path) -> None:
    write_classifier(here / "model", replace(TABLE, pair_field="Other"))
    rows = [["w7 w8", text, "no"] for text in TEXTS]
    wanted = labels([Text(text, "w7 w8") for text in TEXTS])
    assert predict("--input", write_csv("a.csv", [["Other", "Text", "Label"], *rows])) == wanted


def test_without_names_in_the_recipe_the_first_column_is_read_and_said(here: Path) -> None:
    write_classifier(here / "model", CorpusConfig(source="train.tsv"))
    rows = "".join(f"{text}\t{'ab'[i % 2]}\n" for i, text in enumerate(TEXTS))
    Path("a.tsv").write_text(rows)
    result = invoke("predict", "--model", "model", "--input", "a.tsv")
    assert (result.stdout, result.stderr) == (labels(TEXTS), "")
    Path("a.tsv").write_text(f"Kommentar\tUrteil\n{rows}")
    result = invoke("predict", "--model", "model", "--input", "a.tsv")
    assert result.stdout == labels(TEXTS)
    assert result.stderr == (
        "heedful: a.tsv: its first line is a header without 'source', so the first column is read; name others with "
        "--source-field\n"
    )
    result = invoke("predict", "--model", "model", "--input", "a.tsv", "--source-field", "1")
    assert result.stdout == labels(TEXTS)
    assert result.stderr == "heedful: a.tsv: its first line is taken for a header, and is not read\n"


def test_rows_are_counted(here: Path, reporters) -> None:
    predict("--input", write_csv("a.csv", [["Text"], *([f"{text}\nw1"] for text in TEXTS)]))
    [reporter] = reporters
    assert (reporter.total, reporter.done, reporter.unit) == (17, 17, "rows")


def test_a_slip_in_the_last_row_is_found_before_the_first_result(here: Path) -> None:
    Path("a.jsonl").write_text("".join(json.dumps({"Text": text}) + "\n" for text in TEXTS) + "{}\n")
    with pytest.raises(InputError, match=r"a\.jsonl, line 18: no key 'Text'"):
        predict("--input", "a.jsonl", "--output", "out")
    assert not Path("out").exists()


def test_questions_and_their_texts_are_the_first_columns_unless_they_are_named(here: Path) -> None:
    data = DataConfig(train=(CorpusConfig(source="squad.json"),), max_length=23)
    network = TokenClassifier(MODEL, len(TOKENIZER), 2)
    recipe = Recipe(task="span_qa", model=MODEL, data=data)
    write_model(here / "model", recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(network))
    Path("a.tsv").write_text("w1 w2\tw3 w1 w2, w4 and more of it\n")
    wanted = invoke("predict", "--model", "model", "--json", stdin="w1 w2\tw3 w1 w2, w4 and more of it").stdout
    assert predict("--json", "--input", "a.tsv") == wanted
    file = write_csv("a.csv", [["text", "question"], ["w3 w1 w2, w4 and more of it", "w1 w2"]])
    assert predict("--json", "--input", file, "--source-field", "question", "--pair-field", "text") == wanted


def test_texts_that_are_cut_or_empty_are_told_once(here: Path) -> None:
    write_classifier(here / "model", TABLE, max_length=9)
    texts = ["w1 w2", "w1 " * 12, "", "w1 " * 9, " "]
    result = invoke("predict", "--model", "model", "--json", *texts)
    assert result.stderr.splitlines() == [
        "heedful: texts longer than the 9 tokens that the model reads, and cut to that: 2 of 5 (first: line 2)",
        "heedful: empty texts, of which the results mean nothing: 2 of 5 (first: line 3)",
    ]
    found = [json.loads(line)["truncated"] for line in result.stdout.splitlines()]
    assert found == [False, True, False, True, False]
    file = write_csv("a.csv", [["Text"], ["w1\nw2"], ["w1 " * 12]])
    assert "cut to that: 1 of 2 (first: line 4)" in invoke("predict", "--model", "model", "--input", file).stderr
    assert invoke("predict", "--model", "model", "w1").stderr == ""


def test_pairs_are_pointed_out_to_a_model_of_single_texts(here: Path) -> None:
    Path("lines").write_text("w1 w2\nw1\tw2\nw3\nw4\tw5\n")
    note = "trained on single texts: 2 of 4 (first: line 2)"
    assert note in invoke("predict", "--model", "model", "--input", "lines").stderr
    write_classifier(here / "pairs", replace(TABLE, pair_field="Other"))
    assert note not in invoke("predict", "--model", "pairs", "--input", "lines").stderr
