"""`heedful predict` on tables: the columns that the recipe names, one result a row, and what is odd about the texts."""

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from invocation import invoke
from torch import nn

from heedful.architectures import TextClassifier, TokenClassifier, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import CorpusConfig, DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors import Text
from heedful.predictors.classifier import Classifier
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
    with pytest.raises(InputError, match=r"a\.csv: .* no column 'Text'.* several .*'id'.*'body'.*'title'.*--column"):
        predict("--input", file)
    assert predict("--input", file, "--source-field", "body") == labels(TEXTS)
    assert predict("--input", file, "--column", "2") == labels(TEXTS)
    pairs = labels([Text("w0", text) for text in TEXTS])
    assert predict("--input", file, "--source-field", "title", "--pair-field", "body") == pairs
    with pytest.raises(InputError, match=r"columns were given \(body\), but --input FILE is missing"):
        predict("w1 w2", "--source-field", "body")


def test_pairs_are_read_where_the_recipe_names_them(here: Path) -> None:
    write_classifier(here / "model", replace(TABLE, pair_field="Other"))
    rows = [["w7 w8", text, "no"] for text in TEXTS]
    wanted = labels([Text(text, "w7 w8") for text in TEXTS])
    assert predict("--input", write_csv("a.csv", [["Other", "Text", "Label"], *rows])) == wanted


@pytest.mark.parametrize("header", [True, False], ids=["header", "bare"])
@pytest.mark.parametrize("first", [True, False], ids=["label first", "text first"])
@pytest.mark.parametrize("named", ["source", "1", "Text"], ids=["unnamed", "number", "other name"])
@pytest.mark.parametrize("rows", [2, 17])
def test_the_column_of_the_text_is_read_wherever_it_is(here: Path, named, first, header, rows) -> None:
    write_classifier(here / "model", CorpusConfig(source="train.tsv", source_field=named, target_field="2"))
    table = [(["no", "YES"][i % 2], f"{text} w7 w8 w9") for i, text in enumerate(TEXTS[:rows])]
    table = [("label", "comment"), *table] if header else table
    Path("a.tsv").write_text("".join("\t".join(row if first else row[::-1]) + "\n" for row in table))
    result = invoke("predict", "--model", "model", "--input", "a.tsv")
    assert result.stdout == labels([f"{text} w7 w8 w9" for text in TEXTS[:rows]])
    place = "1" if not first else "2"
    told = header or first or named == "Text"
    column = "'comment'" if header else place
    note = f"heedful: a.tsv: the text is read from column {column}; choose another with --column\n"
    assert result.stderr == (note if told else "")


def test_where_it_is_in_doubt_which_column_has_the_text_none_is_read(here: Path) -> None:
    write_classifier(here / "model", CorpusConfig(source="train.tsv"))
    for file in ("a.csv", "a.jsonl"):
        rows = [{"title": f"{text} w7 w8", "body": f"{text} w9 w7"} for text in TEXTS]
        if file == "a.csv":
            write_csv(file, [["title", "body"], *(list(row.values()) for row in rows)])
        else:
            Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(InputError, match=r"several columns may contain the text; .* are 'title' .*--column"):
            predict("--input", file)


@pytest.mark.parametrize("file", ["a.csv", "a.tsv", "a.jsonl"])
def test_names_of_columns_match_in_any_case_and_slips_are_pointed_out(here: Path, file: str) -> None:
    if file == "a.jsonl":
        Path(file).write_text("".join(json.dumps({"ID": "x", " COMMENT": text}) + "\n" for text in TEXTS))
    else:
        separator = "," if file == "a.csv" else "\t"
        Path(file).write_text(f"ID{separator} COMMENT\n" + "".join(f"x{separator}{text}\n" for text in TEXTS))
    for option in ("--column", "--source-field"):
        assert predict("--input", file, option, "comment") == labels(TEXTS)
        with pytest.raises(InputError, match=r"no column is named 'coment' \(did you mean ' COMMENT'\?\)"):
            predict("--input", file, option, "coment")
    write_classifier(here / "model", CorpusConfig(source="train.csv", source_field="Comment"))
    assert predict("--input", file) == labels(TEXTS)


def test_a_header_above_a_column_that_is_named_by_its_number_is_told(here: Path) -> None:
    Path("a.tsv").write_text("Kommentar\tUrteil\n" + "".join(f"{text}\tx\n" for text in TEXTS))
    result = invoke("predict", "--model", "model", "--input", "a.tsv", "--column", "1")
    assert result.stdout == labels(TEXTS)
    assert result.stderr == "heedful: a.tsv: the first line is read as a header, not as text\n"


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
        "heedful: texts truncated to the 9 tokens that the model can read: 2 of 5 (line 2, line 4)",
        "heedful: empty texts, whose results are meaningless: 2 of 5 (line 3, line 5)",
    ]
    found = [json.loads(line)["truncated"] for line in result.stdout.splitlines()]
    assert found == [False, True, False, True, False]
    file = write_csv("a.csv", [["Text"], ["w1\nw2"], ["w1 " * 12]])
    assert (
        "tokens that the model can read: 1 of 2 (line 4)"
        in invoke("predict", "--model", "model", "--input", file).stderr
    )
    assert invoke("predict", "--model", "model", "w1").stderr == ""


def test_pairs_are_pointed_out_to_a_model_of_single_texts(here: Path) -> None:
    Path("lines").write_text("w1 w2\nw1\tw2\nw3\nw4\tw5\n")
    note = "trained on single texts: 2 of 4 (line 2, line 4)"
    assert note in invoke("predict", "--model", "model", "--input", "lines").stderr
    write_classifier(here / "pairs", replace(TABLE, pair_field="Other"))
    said = invoke("predict", "--model", "pairs", "--input", "lines").stderr
    assert note not in said
    assert "trained on text pairs: 2 of 4 (line 1, line 3)" in said


def test_a_json_file_is_read_only_in_a_format_that_is_given(here: Path) -> None:
    Path("a.json").write_text('["w1"]\n')
    with pytest.raises(InputError, match=r"a.json: a .json file is read neither .* --input-format lines"):
        invoke("predict", "--model", "model", "--input", "a.json")
    invoke("predict", "--model", "model", "--input", "a.json", "--input-format", "lines")


def test_a_classifier_searches_the_texts_of_a_table_not_their_labels(here: Path) -> None:
    write_classifier(here / "model", TABLE)
    file = write_csv("a.csv", [[TABLE.source_field, TABLE.target_field], ["w1 w2", "yes"], ["w3 w4", "no"]])
    found = invoke("search", "--model", "model", "--corpus", file, "w3 w4", "--count", 1, "--json")
    assert json.loads(found.stdout)[0]["text"] == "w3 w4"


AWKWARD = ["w1, w2", 'w3 "w4"', "w5\nw6\r\nw7", "w8\tw9", "", "w1\u2028w2\x85w3", "w4\rw5"]


def read_table(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    with file.open(newline="") as stream:
        quoting = csv.QUOTE_MINIMAL if file.suffix == ".csv" else csv.QUOTE_NONE
        return list(csv.DictReader(stream, delimiter="," if file.suffix == ".csv" else "\t", quoting=quoting))


def without_probabilities(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows without the columns of probabilities, of which tests/cli/test_predict_decisions.py is."""
    return [{key: value for key, value in row.items() if not key.startswith("probability_")} for row in rows]


@pytest.mark.parametrize("end", [".csv", ".jsonl"])
@pytest.mark.parametrize("source", [".csv", ".jsonl"])
def test_a_table_is_written_back_with_the_answers(here: Path, source: str, end: str) -> None:
    rows = [{"n": str(number), "Text": text, "Label": "no"} for number, text in enumerate(AWKWARD)]
    file = Path(f"in{source}")
    if source == ".csv":
        write_csv(str(file), [list(rows[0]), *(list(row.values()) for row in rows)])
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = Path(f"out{end}")
    result = invoke("predict", "--model", "model", "--input", file, "--output", out)
    assert result.stdout == ""
    wanted = labels(AWKWARD).split()
    found = without_probabilities(read_table(out))
    assert found == [row | {"label": label} for row, label in zip(rows, wanted, strict=True)]


def test_the_answer_does_not_hide_a_column_of_its_name(here: Path) -> None:
    file = write_csv("in.csv", [["Text", "label"], ["w1 w2", "no"]])
    predict("--input", file, "--output", "out.csv")
    assert without_probabilities(read_table(Path("out.csv"))) == [
        {"Text": "w1 w2", "label": "no", "predicted_label": labels(["w1 w2"]).strip()}
    ]


def test_lines_can_become_a_table_too(here: Path) -> None:
    invoke("predict", "--model", "model", "--output", "out.tsv", stdin='w1 "w2"\nw3\n')
    found = labels(['w1 "w2"', "w3"]).split()
    lines = [line.split("\t")[:2] for line in Path("out.tsv").read_text().splitlines()]
    assert lines == [["text", "label"], ['w1 "w2"', found[0]], ["w3", found[1]]]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_table_on_standard_input_is_read_if_its_format_is_given(here: Path, form: str) -> None:
    rows = {"csv": 'Text,Label\n"w1 w2",no\n', "tsv": "Text\tLabel\nw1 w2\tno\n", "jsonl": '{"Text": "w1 w2"}\n'}
    for source in ([], ["--input", "-"]):
        found = invoke("predict", "--model", "model", "--input-format", form, *source, stdin=rows[form])
        assert (found.stdout, found.stderr) == (labels(["w1 w2"]), "")
    Path("table").write_text(rows[form])
    assert predict("--input", "table", "--input-format", form) == labels(["w1 w2"])


def test_lines_of_a_file_that_is_named_like_a_table_can_be_read(here: Path) -> None:
    Path("a.csv").write_text("w1, w2\nw3\n")
    assert predict("--input", "a.csv", "--input-format", "lines") == labels(["w1, w2", "w3"])


def test_json_lines_do_not_go_into_a_table(here: Path) -> None:
    with pytest.raises(InputError, match=r"--output out\.csv: .*--json"):
        predict("w1", "--json", "--output", "out.csv")
