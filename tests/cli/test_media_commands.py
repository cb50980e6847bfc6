"""Commands on models of pictures and sounds: recipes are checked, files classified and scored, bad ones told."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from invocation import invoke
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.config.load import recipe_to_dict
from heedful.config.toml import to_toml
from heedful.errors import InputError
from toy_media import ENDINGS, LABELS, TASKS, recipe, write_files, write_untrained

NOUNS = dict(zip(TASKS, ("picture", "sound", "video"), strict=True))


@pytest.fixture(params=TASKS)
def task(request) -> str:
    return request.param


@pytest.fixture
def here(task, tmp_path, monkeypatch) -> Path:
    """Files, a model and a recipe in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_files(task, tmp_path)
    write_untrained(task, tmp_path / "model", tmp_path)
    (tmp_path / "config.toml").write_text(to_toml(recipe_to_dict(recipe(task, tmp_path))))
    return tmp_path


def test_each_file_is_answered_by_a_line_with_its_class(here, task):
    names = [f"train/{label}/0{number}{ENDINGS[task]}" for label in ("left", "high") for number in (7, 3, 5)]
    names = [name for name in names if Path(name).exists()]
    result = invoke("predict", "--model", "model", *names)
    answers = heedful.load(here / "model").predict(names)
    assert result.stdout == "".join(f"{name}\t{answer.label}\n" for name, answer in zip(names, answers, strict=True))
    assert (result.stderr, result.exit_code) == ("", 0)


def test_a_folder_stands_for_the_files_below_it_and_json_has_probabilities(here, task):
    file = sorted(Path("valid").rglob("*.*"))[0]
    result = invoke("predict", "--model", "model", "--json", "valid", str(file))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    files = [*sorted(Path("valid").rglob("*.*")), file]
    assert [one["file"] for one in found] == [str(path) for path in files]
    assert all(tuple(one["probabilities"]) == LABELS[task] for one in found)
    assert found[0] == found[-1]


def test_a_classifier_has_no_cross_attention_to_draw(here, task):
    with pytest.raises(InputError, match=f'is a model for the task "{task}"; use it with `heedful predict`'):
        invoke("attention", str(next(Path("valid").rglob("*.*"))), "--model", "model")


def test_a_table_stands_for_the_files_that_it_names(here, task):
    want = invoke("predict", "--model", "model", "valid").stdout
    files = sorted(Path("valid").rglob("*.*"))
    Path("source.csv").write_text("source\n" + "".join(f"{path}\n" for path in files))
    Path("name.tsv").write_text("class\tname\n" + "".join(f"\t{path}\n" for path in files))
    assert invoke("predict", "--model", "model", "source.csv").stdout == want
    assert invoke("predict", "--model", "model", "--input", "source.csv").stdout == want
    assert invoke("predict", "--model", "model", "--input", "name.tsv", "--source-field", "name").stdout == want


def test_results_may_go_to_a_file(here, task):
    invoke("predict", "--model", "model", "valid", "--output", "classes.tsv")
    assert len(Path("classes.tsv").read_text().splitlines()) == len(list(Path("valid").rglob("*.*")))


def test_a_file_that_is_read_in_a_folder_is_not_overwritten(here, task):
    with pytest.raises(InputError, match="would be overwritten"):
        invoke("predict", "--model", "model", "valid", "--output", next(Path("valid").rglob("*.*")), "--force")


def test_a_bad_file_is_told_the_others_are_answered_and_the_exit_code_is_2(here, task):
    bad = Path(f"valid/bad{ENDINGS[task]}")
    bad.write_bytes(b"text")
    result = CliRunner().invoke(app, ["predict", "--model", "model", "valid", "--output", "classes.tsv"])
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 2
    assert re.fullmatch(r"1 file of \d+ could not be read, see above", str(result.exception))
    assert result.stderr.startswith(f"heedful: {bad}: it is no {NOUNS[task]}")
    lines = Path("classes.tsv").read_text().splitlines()
    assert len(lines) == len(list(Path("valid").rglob("*.*"))) - 1
    assert not any("bad" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"the model reads (pictures|sounds|videos): name files, folders of them, or a table of"),
        (
            ["--input", "config.toml"],
            r"--input config.toml: model reads files, not lines; .* or in a table whose name ends in \.tsv",
        ),
        (["nowhere", "valid", "away"], r"nowhere: there is no such file or folder\n  away: there is no such file"),
        (["empty"], r"empty: no file below this folder ends in \.(png|wav|gif), "),
        (["valid", "--pair-field", "x"], "model reads one file at a time; leave --pair-field out"),
        (["valid", "--source-field", "x"], r"columns are named \(x\), but there is no --input FILE"),
        (["--input", "valid", "--source-field", "x"], r"columns are named \(x\), but --input valid is no table"),
        (["--input", "nowhere.csv"], r"nowhere\.csv: there is no such file$"),
        (["empty.csv"], "empty.csv: has no rows that name files"),
        (
            ["empty.csv", "--output", "empty.csv", "--force"],
            "is read as empty.csv and would be overwritten; name another file",
        ),
    ],
)
def test_what_names_no_files_is_refused(arguments, message, here):
    Path("empty").mkdir()
    Path("empty.csv").write_text("source\n")
    with pytest.raises(InputError, match=message):
        invoke("predict", "--model", "model", *arguments)


def test_a_folder_of_classes_or_a_table_is_scored(here, task):
    scores = json.loads(invoke("evaluate", "model", "--source", "valid", "--json").stdout)
    assert set(scores["scores"]) >= {"accuracy", "macro_f1", "matthews", "loss"}
    files = sorted(Path("valid").rglob("*.*"))
    rows = "".join(f"{path}\t{path.parent.name}\n" for path in files)
    Path("list.tsv").write_text(f"source\ttarget\n{rows}")
    table = json.loads(invoke("evaluate", "model", "--source", "list.tsv", "--json").stdout)
    assert table["scores"] == scores["scores"]
    classifier: Any = heedful.load(here / "model")
    answers = classifier.predict(files)
    right = [answer.label == path.parent.name for answer, path in zip(answers, files, strict=True)]
    assert scores["scores"]["accuracy"] == pytest.approx(sum(right) / len(right))


def test_two_models_are_compared_on_files(here, task):
    shutil.copytree("model", "other")
    result = invoke("evaluate", "model", "--against", "other", "--source", "valid")
    assert "accuracy" in result.stdout


def test_a_test_set_with_another_class_is_refused(here):
    first = next(path for path in Path("valid").iterdir())
    first.rename("valid/other")
    with pytest.raises(InputError, match=r"valid/other/00\..*: 'other' is none of the classes"):
        invoke("evaluate", "model", "--source", "valid")


def test_a_model_and_a_recipe_tell_their_size(here, task):
    told = invoke("info", "model").stdout
    assert "1 layer, d_model 16" in told
    assert "vocabulary" not in told
    labels = json.dumps(LABELS[task])
    assert invoke("info", "config.toml", "--set", f"data.labels={labels}").stdout == told
    with pytest.raises(InputError, match="the classes are not known; name them"):
        invoke("info", "config.toml")


def test_a_recipe_is_checked_with_its_files(here, task):
    count = len(list(Path("train").rglob("*.*"))) + len(list(Path("valid").rglob("*.*")))
    content = dict(zip(TASKS, ("pictures", "sound", "videos"), strict=True))[task]
    lines = invoke("config", "check", ".").stdout.splitlines()
    assert lines[0] == f".: good, and its {count} files of {content} are there"
    next(Path("train").rglob("*.*")).write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty; take it out, or save it again"):
        invoke("config", "check", ".")


def test_a_recipe_is_trained_and_its_run_goes_on(here, task):
    invoke("train", ".", "--out", "run", "--set", "train.max_updates=2")
    result = invoke("train", ".", "--out", "run", "--set", "train.max_updates=3")
    assert result.exit_code == 0
    assert len(invoke("predict", "--model", "run", "valid").stdout.splitlines()) == len(
        list(Path("valid").rglob("*.*"))
    )
