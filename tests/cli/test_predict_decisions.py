"""`heedful predict` of classifiers: tables with label and probabilities, thresholds, and the most probable classes."""

import csv
import json
from pathlib import Path

import pytest
import torch
from invocation import invoke
from torch import nn

import heedful
from heedful.architectures import TextClassifier, weights
from heedful.checkpoint import write_model
from heedful.config.schema import CorpusConfig, DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors.media_classifier import MediaClassifier
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from toy_media import TASKS as MEDIA
from toy_media import write_files, write_untrained

TEXTS = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(17)]
CLASSES = ("ant", "bee", "cow")
HEADER = ["id", "text", "label"]
ROWS = [[str(i), text, CLASSES[i % 3]] for i, text in enumerate(TEXTS)]


def write_classifier(folder: Path) -> None:
    torch.manual_seed(3)
    tokenizer = train_tokenizer(TEXTS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    config = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, segments=2)
    network = TextClassifier(config, len(tokenizer), len(CLASSES))
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.4)
    corpus = CorpusConfig(source="train.csv", source_field="text", target_field="label")
    recipe = Recipe(
        task="classification", model=config, data=DataConfig(train=(corpus,), labels=CLASSES, max_length=23)
    )
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))


def write_rows(file: str, header: list[str], rows: list[list[str]]) -> str:
    if file.endswith(".jsonl"):
        Path(file).write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        separator = {"semi.csv": ";"}.get(file, "\t" if file.endswith(".tsv") else ",")
        with Path(file).open("w", newline="") as stream:
            csv.writer(stream, delimiter=separator, lineterminator="\n").writerows([header, *rows])
    return file


def read_rows(file: str, separator: str = ",") -> list[dict[str, str]]:
    if file.endswith(".jsonl"):
        return [json.loads(line) for line in Path(file).read_text().splitlines()]
    with Path(file).open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t" if file.endswith(".tsv") else separator))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_classifier(tmp_path / "model")
    return tmp_path


@pytest.mark.parametrize("given", ["in.csv", "semi.csv", "in.tsv", "in.jsonl"])
@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_a_table_has_the_columns_of_the_input_the_label_and_each_probability(here, given, output):
    invoke("predict", "--model", "model", "--input", write_rows(given, HEADER, ROWS), "--output", output)
    answers = heedful.load("model").predict(TEXTS)
    # A .csv file has the separator of the one it answers.
    found = read_rows(output, ";" if given == "semi.csv" else ",")
    assert list(found[0]) == [*HEADER, "predicted_label", *(f"probability_{label}" for label in CLASSES)]
    assert [[row[name] for name in HEADER] for row in found] == ROWS
    assert [row["predicted_label"] for row in found] == [answer.label for answer in answers]
    for row, answer in zip(found, answers, strict=True):
        assert {label: float(row[f"probability_{label}"]) for label in CLASSES} == answer.probabilities


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_lines_have_a_column_for_the_text(here, output):
    Path("lines.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    invoke("predict", "--model", "model", "--input", "lines.txt", "--output", output, "--top-k", 2)
    answers = heedful.load("model").predict(TEXTS)
    for row, text, answer in zip(read_rows(output), TEXTS, answers, strict=True):
        ranked = sorted(answer.probabilities.items(), key=lambda entry: -entry[1])[:2]
        assert list(row) == ["text", "label", "label_1", "probability_1", "label_2", "probability_2"]
        assert (row["text"], row["label"]) == (text, answer.label)
        assert [(row[f"label_{k}"], float(row[f"probability_{k}"])) for k in (1, 2)] == ranked


def test_the_most_probable_classes_are_written_on_lines_and_in_json(here):
    [answer] = heedful.load("model").predict(TEXTS[:1])
    ranked = sorted(answer.probabilities.items(), key=lambda entry: -entry[1])[:2]
    line = invoke("predict", "--model", "model", "--top-k", 2, TEXTS[0]).stdout
    assert line == "\t".join(f"{label}\t{share:.4f}" for label, share in ranked) + "\n"
    found = json.loads(invoke("predict", "--model", "model", "--top-k", 2, "--json", TEXTS[0]).stdout)
    assert list(found["probabilities"].items()) == ranked


def test_a_threshold_leaves_out_classes_that_are_less_probable_and_counts(here):
    answers = heedful.load("model").predict(TEXTS)
    best = [max(answer.probabilities.values()) for answer in answers]
    least = sorted(best)[8]
    result = invoke("predict", "--model", "model", "--threshold", least, *TEXTS)
    want = [answer.label if share >= least else "" for answer, share in zip(answers, best, strict=True)]
    assert result.stdout.split("\n")[:-1] == want
    assert f"texts without a class, because none reaches its --threshold: {want.count('')} of 17" in result.stderr


def test_a_class_with_a_threshold_is_named_from_there_on(here):
    answers = heedful.load("model").predict(TEXTS)
    rare = min(CLASSES, key=lambda label: sum(answer.label == label for answer in answers))
    least = sorted(answer.probabilities[rare] for answer in answers)[8]
    result = invoke("predict", "--model", "model", "--threshold", f"{rare}={least}", *TEXTS)
    others = [label for label in CLASSES if label != rare]
    for line, answer in zip(result.stdout.splitlines(), answers, strict=True):
        share = answer.probabilities
        assert line == (rare if share[rare] >= least else max(others, key=lambda label: share[label]))


@pytest.mark.parametrize("options", [["--threshold", "gnu=0.3"], ["--threshold", "2"]])
def test_a_threshold_that_cannot_be_is_refused(here, options):
    with pytest.raises(InputError, match="--threshold"):
        invoke("predict", "--model", "model", *options, "w1")


@pytest.mark.parametrize("task", MEDIA)
@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_files_have_the_same_tables_thresholds_and_classes(tmp_path, monkeypatch, task, output):
    monkeypatch.chdir(tmp_path)
    write_files(task, tmp_path)
    write_untrained(task, tmp_path / "model", tmp_path)
    files = sorted(map(str, (path.relative_to(tmp_path) for path in (tmp_path / "valid").rglob("*.*"))))
    classifier = heedful.load("model")
    assert isinstance(classifier, MediaClassifier)
    answers = classifier.predict(files)
    invoke("predict", "--model", "model", *files, "--output", output)
    found = read_rows(output)
    labels = list(answers[0].probabilities)
    assert list(found[0]) == ["file", "label", *(f"probability_{label}" for label in labels)]
    assert [(row["file"], row["label"]) for row in found] == [
        (file, answer.label) for file, answer in zip(files, answers, strict=True)
    ]
    table = write_rows("list.csv", ["note", "source"], [[f"n{i}", file] for i, file in enumerate(files)])
    result = invoke("predict", "--model", "model", "--input", table, "--top-k", 1, "--threshold", 1, "--output", output)
    found = read_rows(output)
    assert list(found[0]) == ["note", "source", "label", "label_1", "probability_1"]
    assert [(row["note"], row["source"], row["label"]) for row in found] == [
        (f"n{i}", file, "") for i, file in enumerate(files)
    ]
    assert f"files without a class, because none reaches its --threshold: {len(files)} of {len(files)}" in result.stderr
