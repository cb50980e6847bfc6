"""Commands on models of images and audio files: recipes are checked, files classified and scored, bad ones told."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from invocation import invoke
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.cli.files import check_bad_files
from heedful.config.load import recipe_to_dict, to_toml
from heedful.errors import InputError
from toy_media import ENDINGS, LABELS, RATE, TASKS, recipe, write_files, write_untrained

NOUNS = dict(zip(TASKS, ("an image", "audio", "a video"), strict=True))


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
    with pytest.raises(InputError, match=f"is an? {task.replace('_', ' ')} model; use it with `heedful predict`"):
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
    invoke("predict", "--model", "model", "valid", "--output", "classes.txt")
    assert Path("classes.txt").read_text() == invoke("predict", "--model", "model", "valid").stdout


def awkward_names(task: str) -> list[str]:
    """Files whose names hold what would break a line or a cell."""
    end = ENDINGS[task]
    names = [f"a\tb{end}", f"a\nb{end}", f'a, "b"{end}', f"a\rb{end}", f"a\u2028b\\c{end}"]
    for name in names:
        shutil.copy(next(Path("valid").rglob(f"*{end}")), name)
    return names


def test_names_of_files_do_not_break_lines_and_are_kept_in_tables(here, task):
    names = awkward_names(task)
    labels = [answer.label for answer in heedful.load(here / "model").predict(names)]
    end = ENDINGS[task]
    shown = [rf"a\tb{end}", rf"a\nb{end}", f'a, "b"{end}', rf"a\rb{end}", f"a\u2028b\\c{end}"]
    lines = "".join(f"{name}\t{label}\n" for name, label in zip(shown, labels, strict=True))
    assert invoke("predict", "--model", "model", *names).stdout_bytes.decode() == lines
    for out in ("out.csv", "out.jsonl", "out.tsv"):
        invoke("predict", "--model", "model", *names, "--output", out)
    with Path("out.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert [row[:2] for row in rows] == [["file", "label"], *map(list, zip(names, labels, strict=True))]
    objects = [json.loads(line) for line in Path("out.jsonl").read_bytes().decode().split("\n")[:-1]]
    assert [(one["file"], one["label"]) for one in objects] == list(zip(names, labels, strict=True))
    rows = [line.split("\t") for line in Path("out.tsv").read_bytes().decode().split("\n")[:-1]]
    assert [row[:2] for row in rows] == [["file", "label"], *map(list, zip(shown, labels, strict=True))]


def test_names_of_files_come_from_standard_input(here, task):
    names = [str(path) for path in sorted(Path("valid").rglob("*.*"))]
    want = invoke("predict", "--model", "model", *names).stdout
    for end in ("\n", "\r\n"):
        for given in ([], ["-"], ["--input", "-"]):
            assert invoke("predict", "--model", "model", *given, stdin=end.join(names)).stdout == want
    mixed = invoke("predict", "--model", "model", names[0], "-", stdin="\n".join(names[1:]))
    assert mixed.stdout == want
    with pytest.raises(InputError, match="nothing: no such file or folder"):
        invoke("predict", "--model", "model", stdin="nothing\n")
    with pytest.raises(InputError, match=r"the model reads .* give files"):
        invoke("predict", "--model", "model")


@pytest.mark.parametrize("end", [".csv", ".tsv", ".jsonl"])
def test_the_column_of_the_files_is_found_where_the_class_comes_first(here, task, end):
    files = sorted(Path("valid").rglob("*.*"))
    want = invoke("predict", "--model", "model", *files).stdout
    rows = [{"class": path.parent.name, "place": str(path)} for path in files]
    if end == ".jsonl":
        Path("table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        separator = "," if end == ".csv" else "\t"
        lines = [separator.join(("class", "place")), *(separator.join(row.values()) for row in rows)]
        Path(f"table{end}").write_text("\n".join(lines) + "\n")
    result = invoke("predict", "--model", "model", f"table{end}")
    assert result.stdout == want
    assert f"table{end}: files are read from column 'place'; to use another, name it 'source'\n" in result.stderr
    result = invoke("predict", "--model", "model", "--input", f"table{end}")
    note = f"table{end}: files are read from column 'place'; choose another with --column\n"
    assert result.stderr.count(note) == 1
    assert invoke("predict", "--model", "model", "--input", f"table{end}", "--column", "PLACE").stdout == want


def test_a_file_that_is_read_in_a_folder_is_not_overwritten(here, task):
    with pytest.raises(InputError, match="would be overwritten"):
        invoke("predict", "--model", "model", "valid", "--output", next(Path("valid").rglob("*.*")), "--force")


def break_two(task: str) -> list[str]:
    """Make two of the files bad: one is text, one is empty; return their names."""
    label = LABELS[task][0]
    bad = [f"valid/{label}/{name}{ENDINGS[task]}" for name in ("00", "bad")]
    Path(bad[0]).write_bytes(b"text")
    Path(bad[1]).write_bytes(b"")
    return bad


COMMANDS = {
    "predict": ["predict", "--model", "model", "valid"],
    "evaluate": ["evaluate", "model", "--source", "valid"],
    "compare": ["evaluate", "model", "--against", "model", "--source", "valid"],
}


@pytest.mark.parametrize(("count", "others"), [(1, False), (2, True)])
def test_others_are_done_where_there_are_others(count, others):
    with pytest.raises(InputError) as raised:
        check_bad_files(["a.wav: it is empty"], count, skip_bad=False)
    assert ("the others are done" in str(raised.value)) == others


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_files_are_all_named_at_the_end_the_others_are_read_and_the_exit_code_is_2(here, task, command):
    good = len(list(Path("valid").rglob("*.*"))) - 1
    bad = break_two(task)
    result = CliRunner().invoke(app, COMMANDS[command])
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 2
    said = str(result.exception).splitlines()
    assert said[0] == f"2 of {good + 2} files could not be read:"
    assert [line.split(": ")[0].strip().removeprefix(f"{here}/") for line in said[1:3]] == bad
    assert f"not {NOUNS[task]}" in said[1]
    assert "the file is empty" in said[2]
    if command == "predict":
        assert len(result.stdout.splitlines()) == good
    else:
        assert "accuracy" in result.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_files_that_are_to_be_skipped_are_named_and_the_exit_code_is_0(here, task, command):
    bad = break_two(task)
    result = CliRunner().invoke(app, [*COMMANDS[command], "--skip-bad"])
    assert (result.exception, result.exit_code) == (None, 0)
    assert all(name in result.stderr for name in bad)
    want = CliRunner().invoke(app, COMMANDS[command]).stdout
    assert result.stdout == want


def test_scores_are_those_of_the_files_that_can_be_read(here, task):
    for name in break_two(task):
        Path(name).rename(f"{name}.aside")
    want = invoke("evaluate", "model", "--source", "valid").stdout
    for aside in list(Path("valid").rglob("*.aside")):
        aside.rename(str(aside).removesuffix(".aside"))
    result = CliRunner().invoke(app, [*COMMANDS["evaluate"], "--skip-bad"])
    assert result.stdout == want


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_what_is_there_of_a_truncated_file_is_read_if_that_is_asked_for(here, task, command):
    if task == "video_classification":
        with pytest.raises(InputError, match="--truncated is for image or audio models, but model reads video"):
            invoke(*COMMANDS[command], "--truncated")
        return
    path = Path(f"valid/{LABELS[task][0]}/00{ENDINGS[task]}")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=rf"1 of \d+ files could not be read:\n  .*{path}: .*(cut off|truncated)"):
        invoke(*COMMANDS[command])
    result = invoke(*COMMANDS[command], "--truncated")
    assert (result.exit_code, "cut off" in result.stderr, "could not" in result.stderr) == (0, False, False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_channels_that_cancel_are_reported_and_one_can_be_chosen(here, task, command):
    if task != "audio_classification":
        with pytest.raises(InputError, match=r"--channel is for audio models, but model reads (image|video)"):
            invoke(*COMMANDS[command], "--channel", 1)
        return
    path = Path(f"valid/{LABELS[task][0]}/00{ENDINGS[task]}")
    samples, rate = soundfile.read(path, dtype="float32")
    want = invoke(*COMMANDS[command]).stdout
    soundfile.write(path, np.stack([samples, -samples], axis=1), rate)
    with pytest.raises(InputError, match=rf"{path}: its channels cancel each other: their mean is .*--channel 1"):
        invoke(*COMMANDS[command])
    assert invoke(*COMMANDS[command], "--channel", 1).stdout == want


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"the model reads (images|audio files|videos); give files, folders of them, or a table of"),
        (
            ["--input", "config.toml"],
            r"--input config.toml: model reads files, not lines; .* or in a table whose name ends in \.tsv",
        ),
        (["nowhere", "valid", "away"], r"nowhere: no such file or folder; .*\n  away: no such file"),
        (["empty"], r"empty: no file below this folder ends in \.(png|wav|gif), "),
        (["valid", "--pair-field", "x"], "model reads one file at a time; leave --pair-field out"),
        (["valid", "--source-field", "x"], r"columns were given \(x\), but --input FILE is missing"),
        (["--input", "valid", "--source-field", "x"], r"columns were given \(x\), but --input valid is not a table"),
        (["--input", "nowhere.csv"], r"nowhere\.csv: no such file; check the path"),
        (["empty.csv"], "empty.csv: has no rows with file names"),
        (
            ["empty.csv", "--output", "empty.csv", "--force"],
            "is also the input and would be overwritten; choose another file",
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
    with pytest.raises(InputError, match=r"valid/other/00\..*: the label 'other' is not in data.labels"):
        invoke("evaluate", "model", "--source", "valid")


def test_a_model_and_a_recipe_tell_their_size(here, task):
    told = invoke("info", "model").stdout
    assert "1 layer, d_model 16" in told
    assert "vocabulary" not in told
    labels = json.dumps(LABELS[task])
    assert invoke("info", "config.toml", "--set", f"data.labels={labels}").stdout == told
    with pytest.raises(InputError, match="the classes are unknown; list them"):
        invoke("info", "config.toml")


def test_a_recipe_is_checked_with_its_files(here, task):
    count = len(list(Path("train").rglob("*.*"))) + len(list(Path("valid").rglob("*.*")))
    kind = dict(zip(TASKS, ("image", "audio", "video"), strict=True))[task]
    lines = invoke("config", "check", ".").stdout.splitlines()
    assert lines[0] == f".: no errors; found {count} {kind} files"
    next(Path("train").rglob("*.*")).write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty; remove it, or save it again"):
        invoke("config", "check", ".")


def test_a_recipe_is_trained_and_its_run_goes_on(here, task):
    invoke("train", ".", "--out", "run", "--set", "train.max_updates=2")
    result = invoke("train", ".", "--out", "run", "--set", "train.max_updates=3")
    assert result.exit_code == 0
    assert len(invoke("predict", "--model", "run", "valid").stdout.splitlines()) == len(
        list(Path("valid").rglob("*.*"))
    )


def test_long_sounds_are_classified_in_windows_and_that_is_said(here, task):
    if task != "audio_classification":
        return
    samples = np.tile(soundfile.read("valid/low/00.wav")[0], 20)[: round(2.5 * RATE)]
    soundfile.write("long.wav", samples, RATE)
    result = invoke("predict", "--model", "model", "--json", "long.wav", "valid/low/00.wav")
    long, short = map(json.loads, result.stdout.splitlines())
    assert (long["windows"], "windows" in short) == (3, False)
    assert result.stderr.startswith(
        "heedful: files longer than audio.max_seconds = 1, read in windows whose probabilities are averaged: 1 of 2 "
    )
    assert "(long.wav, 3 windows)" in result.stderr


SILENCES = {
    "zeros": np.zeros(900),
    "a constant": np.full(700, 0.3),
    "the noise of rounding": np.resize([0, 1, 0, -1, 1], 800) / 32768,
}


@pytest.fixture
def silent(tmp_path, monkeypatch) -> list[str]:
    """Names of silent files of each kind, and a model, a recipe and audio files in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_files("audio_classification", tmp_path)
    write_untrained("audio_classification", tmp_path / "model", tmp_path)
    (tmp_path / "config.toml").write_text(to_toml(recipe_to_dict(recipe("audio_classification", tmp_path))))
    names = []
    for number, samples in enumerate(SILENCES.values()):
        names.append(f"valid/low/silent{number}.wav")
        soundfile.write(names[-1], samples, RATE, subtype="FLOAT")
    return names


def test_files_in_which_nothing_can_be_heard_are_named_next_to_their_classes(silent):
    result = invoke("predict", "--model", "model", "valid")
    assert f"silent files, for which the model predicts a class anyway: 3 of 13 ({', '.join(silent)})\n" in (
        result.stderr
    )
    assert result.exit_code == 0
    rows = [json.loads(line) for line in invoke("predict", "--model", "model", "valid", "--json").stdout.splitlines()]
    assert [row["file"] for row in rows if row.get("silent")] == silent


def test_silent_files_of_a_set_are_counted(silent):
    said = "silent audio files, to be removed unless they are examples of silence: 3 of 13"
    assert said in invoke("evaluate", "model", "--source", "valid").stderr
    assert said in invoke("train", "config.toml", "--out", "run").stderr
    assert "3 silent audio files" in invoke("init", "valid", "--out", "made").output


def test_what_can_be_heard_is_not_called_silent(silent):
    for name in silent:
        Path(name).unlink()
    for arguments in (["predict", "--model", "model"], ["evaluate", "model", "--source"], ["init", "--out", "made"]):
        assert not re.search("nothing can be heard|silent files", invoke(*arguments, "valid").output)
