"""Tables as spreadsheets save them: semicolons, and rows without a label, which every command counts and leaves out."""

import json
from io import StringIO
from pathlib import Path

import pytest
from invocation import invoke
from PIL import Image
from rich.console import Console

from heedful.config.load import recipe_from_dict
from heedful.training.loop import train
from toy_media import write_files, write_untrained

EMPTY = 5
ROWS = [(f"w{i % 7} w{i % 5} w{i % 11}", "" if i % 12 == 4 else ("ja" if i % 3 else "nein")) for i in range(60)]
WRITTEN = {
    "semicolons.csv": "text;label\n" + "".join(f'"{text}";{label}\n' for text, label in ROWS),
    "commas.csv": "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS),
    "tabs.tsv": "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS),
    "objects.jsonl": "".join(json.dumps({"text": text, "label": label or None}) + "\n" for text, label in ROWS),
}


@pytest.fixture(params=WRITTEN)
def table(request, tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path(request.param).write_text(WRITTEN[request.param])
    return request.param


def test_init_leaves_rows_without_a_label_out_with_a_count(table):
    result = invoke("init", table, "--out", "first")
    assert f"heedful: {EMPTY} rows left out for an empty label (first: {table}, line " in result.stderr
    assert "2 classes: ja" in result.stdout
    rows = [json.loads(line) for part in Path("first/data").iterdir() for line in part.read_text().splitlines()]
    assert sorted((row["text"], row["label"]) for row in rows) == sorted(row for row in ROWS if row[1])


def test_training_and_evaluate_leave_them_out_with_a_count(table):
    corpus = {"source": table, "source_field": "text", "target_field": "label"}
    settings = {
        "task": "classification",
        "data": {"train": [corpus], "valid": corpus, "test": corpus, "max_length": 19},
        "tokenizer": {"kind": "word", "byte_fallback": False},
        "model": {"family": "encoder", "d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1},
        "train": {"max_updates": 1, "device": "cpu", "threads": 1},
    }
    said = StringIO()
    train(recipe_from_dict(settings, "test"), Path("run"), Console(file=said, width=500))
    count = f"{table}: {len(ROWS) - EMPTY} examples, {EMPTY} dropped: {EMPTY} for an empty label (first: {table}, line "
    assert said.getvalue().count(count) == 2
    result = invoke("evaluate", "run", "--json")
    assert count in result.stderr
    assert sum(scores["support"] for scores in json.loads(result.stdout)["classes"].values()) == len(ROWS) - EMPTY


def test_files_without_a_class_are_left_out_with_a_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = "image_classification"
    write_files(task, tmp_path)
    write_untrained(task, tmp_path / "model", tmp_path)
    files = sorted(Path("valid").rglob("*.png"))
    lines = [f"{path};{'' if number % 5 == 2 else path.parent.name}\n" for number, path in enumerate(files)]
    Path("list.csv").write_text("source;target\n" + "".join(lines))
    result = invoke("evaluate", "model", "--source", "list.csv")
    kept = sum(not line.endswith(";\n") for line in lines)
    assert f"{kept} files, {len(files) - kept} dropped: {len(files) - kept} for an empty label" in result.stderr
    assert f"confusion matrix of {kept} examples" in result.stdout


@pytest.mark.parametrize(("rare", "dominates"), [(17, True), (60, False)])
@pytest.mark.parametrize("kind", ["texts", "images"])
def test_init_says_that_one_class_dominates(tmp_path, monkeypatch, kind, rare, dominates):
    monkeypatch.chdir(tmp_path)
    rows = [("usual", i) for i in range(83)] + [("rare", i) for i in range(rare)]
    if kind == "images":
        for label, number in rows:
            Path("all", label).mkdir(parents=True, exist_ok=True)
            Image.new("L", (9, 9), number).save(Path("all", label, f"{number}.png"))
    else:
        Path("all.csv").write_text("text;label\n" + "".join(f"{x} w{i} w{i % 5} so;{x}\n" for x, i in rows))
    result = invoke("init", "all" if kind == "images" else "all.csv", "--out", "first")
    line = "  83% of the examples belong to class 'usual', so a model that always predicts it has an accuracy of 83%"
    assert (line in result.stdout) == dominates
