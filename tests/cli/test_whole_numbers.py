"""Labels that are whole numbers, of which one is missing: tables then have 1.0 and 2.0, and the classes are 1 and 2."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from invocation import invoke

from heedful.config.load import load_recipe
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.media_files import media_files, media_labels
from toy_media import SIDES, write_pictures

TEXTS = [f"{'dull slow sad' if number % 2 else 'fine quick glad'} song number {number}" for number in range(60)]
MISSING = 7  # the row whose label is missing

RECIPE = """
name = "songs"
task = "classification"
[data]
{labels}
max_length = 32
[[data.train]]
source = "{train}"
source_field = "text"
target_field = "label"
[data.valid]
source = "{valid}"
source_field = "text"
target_field = "label"
[tokenizer]
vocab_size = 300
[model]
family = "encoder"
d_model = 16
d_ff = 16
encoder_layers = 1
heads = 2
[train]
max_updates = 2
batch_tokens = 500
validate_every = 2
save_every = 2
"""


def label(number: int, *, whole: bool = False) -> str:
    """A label as pandas writes it, or as a whole number."""
    return "" if number == MISSING else f"{1 + number % 2}{'' if whole else '.0'}"


def table(file: Path, *, whole: bool = False) -> Path:
    """A table, or a list of objects, of labelled texts."""
    rows = [(text, label(number, whole=whole)) for number, text in enumerate(TEXTS)]
    if file.suffix == ".jsonl":
        values = [json.loads(text) if text else float("nan") for _, text in rows]
        lines = [json.dumps({"text": text, "label": value}) for (text, _), value in zip(rows, values, strict=True)]
    else:
        lines = [("\t" if file.suffix == ".tsv" else ",").join(row) for row in [("text", "label"), *rows]]
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained on labels with fractions, and validated on labels without."""
    folder = tmp_path_factory.mktemp("songs")
    train, valid = table(folder / "train.csv"), table(folder / "valid.csv", whole=True)
    (folder / "config.toml").write_text(RECIPE.format(labels="", train=train.name, valid=valid.name))
    invoke("train", folder, "--out", folder / "run")
    return folder / "run"


@pytest.mark.parametrize("name", ["songs.csv", "songs.tsv", "songs.jsonl"])
def test_init_takes_whole_numbers_for_classes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path(name))
    assert "2 classes: 1 (30), 2 (29)" in invoke("init", name, "--out", "out").output
    assert load_recipe("out").data.labels == ("1", "2")
    written = [json.loads(line) for part in Path("out/data").iterdir() for line in part.read_text().splitlines()]
    assert {row["label"] for row in written} == {"1", "2"}


def test_classes_of_files_are_whole_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for side in SIDES[:2]:
        write_pictures(tmp_path, side, 20)
        for file in tmp_path.glob("[0-9]*.png"):
            file.rename(f"{side}-{file.name}")
    rows = [f"{file.name},{label(number)}\n" for number, file in enumerate(sorted(tmp_path.glob("*.png")))]
    Path("pictures.csv").write_text("".join(["file,label\n", *rows]))
    assert "2 classes: 1 (20), 2 (19)" in invoke("init", "pictures.csv", "--out", "out").output
    assert load_recipe("out").data.labels == ("1", "2")
    corpus = CorpusConfig(source="pictures.csv", source_field="file", target_field="label")
    data = DataConfig(modality="image", train=(corpus,))
    assert media_labels(data) == ("1", "2")
    assert {file.target for file in media_files(corpus, replace(data, labels=("1", "2")))} == {"1", "2"}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ["test.csv", "test.tsv", "test.jsonl"])
def test_evaluate_reads_labels_with_and_without_a_fraction(run: Path, name: str, whole: bool, tmp_path: Path) -> None:
    file = table(tmp_path / name, whole=whole)
    assert "59 examples, 1 dropped: 1 for an empty label" in invoke("evaluate", run, "--source", file).output


def test_predict_answers_with_whole_numbers(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    invoke("predict", "--model", run, "--input", table(tmp_path / "new.csv"), "--output", out)
    header, *rows = out.read_text().splitlines()
    assert header.split(",")[:4] == ["text", "label", "predicted_label", "probability_1"]
    assert {row.split(",")[2] for row in rows} <= {"1", "2"}


def test_a_run_whose_classes_have_fractions_still_reads_both(run: Path, tmp_path: Path) -> None:
    shutil.copy(run.parent / "train.csv", tmp_path)
    shutil.copy(run.parent / "valid.csv", tmp_path)
    recipe = RECIPE.format(labels='labels = ["1.0", "2.0"]', train="train.csv", valid="valid.csv")
    (tmp_path / "config.toml").write_text(recipe)
    invoke("train", tmp_path, "--out", tmp_path / "run")
    for name in ("train.csv", "valid.csv"):
        assert "59 examples" in invoke("evaluate", tmp_path / "run", "--source", tmp_path / name).output
