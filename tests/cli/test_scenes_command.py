"""`heedful scenes`: files that are always the same, and a folder that is never mixed up."""

import hashlib
from functools import partial
from pathlib import Path

import pytest
from invocation import invoke

from heedful.errors import InputError, RunError

FEW = ("--train", 23, "--valid", 3, "--test", 5)


run = partial(invoke, "scenes")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_corpus_is_written_with_all_that_is_known_about_it(tmp_path):
    out = tmp_path / "some" / "scenes"
    result = run("en-de", "--out", out, *FEW)
    files = contents(out)
    assert len(files) == 21
    assert {name.split(".")[0]: text.count(b"\n") for name, text in files.items()} == {
        "train": 23,
        "valid": 3,
        "test": 5,
    }
    assert "23 pairs to train on, 3 for validation, 5 for test" in result.output
    assert files["test.de"].decode().split("\n")[0] in result.output
    assert f"heedful init {out / 'train.en'} {out / 'train.de'}" in result.output


def test_every_pair_is_counted(tmp_path, reporters):
    run("en-de", "--out", tmp_path / "scenes", *FEW)
    invoke("stories", "--out", tmp_path / "stories", *FEW)
    found = [(reporter.unit, reporter.total, reporter.done) for reporter in reporters]
    assert found == [("pairs", 31, 31), ("stories", 31, 31)]


def test_the_files_of_a_seed_never_change(tmp_path):
    """The sum of 100 pairs: a corpus that others trained on can be written again."""
    run("en-zh", "--out", tmp_path / "a", "--train", 100, "--valid", 1, "--test", 1, "--seed", 2)
    digest = hashlib.sha256()
    for name, text in sorted(contents(tmp_path / "a").items()):
        digest.update(name.encode() + text)
    assert digest.hexdigest() == "6fa2f759c1ab60545fd83b878b6e77d5de183adfdfb73eaef2ee52cf45d6b13d"


def test_the_same_command_finishes_what_was_interrupted(tmp_path):
    run("en-de", "--out", tmp_path, *FEW)
    before = contents(tmp_path)
    (tmp_path / "valid.de").unlink()
    run("en-de", "--out", tmp_path, *FEW)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "problem"), [("train.en", "a different train.en"), ("notes.txt", "notes.txt, which does not belong to")]
)
def test_a_folder_with_other_files_is_left_alone(tmp_path, name, problem):
    (tmp_path / name).write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"contains {problem}.*; choose an empty folder"):
        run("en-de", "--out", tmp_path, *FEW)
    assert contents(tmp_path) == {name: b"mine\n"}


def test_other_files_are_reported_before_anything_is_generated(tmp_path, reporters):
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"contains notes\.txt"):
        run("en-de", "--out", tmp_path, *FEW)
    assert reporters == []


def test_more_sentences_than_the_grammar_has_are_rejected(tmp_path):
    with pytest.raises(InputError, match="--valid must be at most 100,000, but is 100,000,000"):
        run("en-de", "--out", tmp_path / "scenes", "--valid", 100_000_000)


def test_another_seed_does_not_replace_a_corpus(tmp_path):
    run("en-de", "--out", tmp_path, *FEW)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="choose an empty folder"):
        run("en-de", "--out", tmp_path, *FEW, "--seed", 2)
    assert contents(tmp_path) == before


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "scenes").write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match="is a file; give a folder"):
        run("en-de", "--out", tmp_path / "scenes", *FEW)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(
        RunError, match=r"cannot write to .*scenes: Permission denied; choose another folder with --out"
    ):
        run("en-de", "--out", tmp_path / "scenes", *FEW)


def test_unknown_languages_write_nothing(tmp_path):
    with pytest.raises(InputError, match='unknown language pair "en-fr"'):
        run("en-fr", "--out", tmp_path / "scenes", *FEW)
    assert not (tmp_path / "scenes").exists()
