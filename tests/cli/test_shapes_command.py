"""`heedful shapes`: files that are always the same, and a folder that is never mixed up."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest
from invocation import invoke

from heedful.corpora.shapes import corpus as drawing
from heedful.errors import InputError, RunError

FEW = ("--train", 23, "--valid", 3, "--test", 5)
WHISTLE = """#!{python}
import sys, wave
with wave.open(sys.argv[4], "wb") as audio:
    audio.setparams((1, 2, 16000, 0, "NONE", ""))
    audio.writeframes(sys.argv[5].encode() * 2)
"""

run = partial(invoke, "shapes", "--out")


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(table):
    return [json.loads(line) for line in table.decode().splitlines()]


def test_a_corpus_is_a_table_for_each_part_and_the_pictures_that_it_names(tmp_path):
    out = tmp_path / "some" / "shapes"
    result = run(out, *FEW)
    files = contents(out)
    tables = {part: rows(files.pop(f"{part}.jsonl")) for part in ("train", "valid", "test")}
    assert {part: len(found) for part, found in tables.items()} == {"train": 23, "valid": 3, "test": 5}
    assert set(files) == {row["picture"] for found in tables.values() for row in found}
    assert all(content.startswith(b"\x89PNG") for content in files.values())
    assert len(set(files.values())) == 31
    assert "23 images to train on, 3 for validation, 5 for test" in result.output
    assert all(tables["test"][0][language] in result.output for language in ("en", "de", "zh"))
    command = f"heedful init {out / 'train.jsonl'} --task captioning --target-field en"
    assert result.output.endswith(f"next:\n  {command}\n")


def test_the_same_command_writes_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(tmp_path / name, *FEW, "--seed", seed)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    other = contents(tmp_path / "c")
    assert all(other[name] != content for name, content in contents(tmp_path / "a").items())


def test_no_caption_of_one_corpus_is_held_out_by_another(tmp_path):
    run(tmp_path / "a", "--train", 1009, "--valid", 1, "--test", 1, "--seed", 1)
    run(tmp_path / "b", "--train", 1, "--valid", 67, "--test", 67, "--seed", 2)
    trained = {row["en"] for row in rows((tmp_path / "a/train.jsonl").read_bytes())}
    held_out = [row["en"] for part in ("valid", "test") for row in rows((tmp_path / f"b/{part}.jsonl").read_bytes())]
    assert not trained.intersection(held_out)
    assert len(set(held_out)) == 134


def test_every_file_is_counted(tmp_path, reporters):
    run(tmp_path, *FEW)
    assert [(reporter.unit, reporter.total, reporter.done) for reporter in reporters] == [("files", 34, 34)]


def test_a_killed_command_goes_on(tmp_path, monkeypatch, reporters):
    run(tmp_path / "whole", *FEW)
    drawn = []
    png = drawing.png

    def killed(scene):
        drawn.append(scene)
        if len(drawn) == 11:
            raise KeyboardInterrupt
        return png(scene)

    monkeypatch.setattr("heedful.corpora.shapes.corpus.png", killed)
    run(tmp_path / "out", *FEW)
    there = contents(tmp_path / "out")
    assert len(there) == 10
    (tmp_path / "out/pictures/.tmp-train-000011.png").write_bytes(b"half")
    monkeypatch.setattr("heedful.corpora.shapes.corpus.png", png)
    before = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in there}
    run(tmp_path / "out", *FEW)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert before == {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in there}
    assert reporters[-1].done == 34


@pytest.mark.parametrize("name", ["notes.txt", "pictures/holiday.png", "pictures/train-000025.png", "sounds"])
def test_a_folder_with_something_else_is_left_as_it_is(name, tmp_path):
    if name == "sounds":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"mine")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=f"--out .*: contains {name}, which does not belong to these shapes"):
        run(tmp_path, *FEW)
    assert contents(tmp_path) == before


def test_another_seed_does_not_replace_a_corpus(tmp_path):
    run(tmp_path, *FEW)
    before = contents(tmp_path)
    with pytest.raises(
        InputError,
        match=r"a different pictures/train-000001\.png, as with another size or seed; choose an empty folder",
    ):
        run(tmp_path, *FEW, "--seed", 2)
    assert contents(tmp_path) == before


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "shapes").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"--out .*: is a file; give a folder"):
        run(tmp_path / "shapes", *FEW)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(
        RunError, match=r"cannot write to .*shapes: Permission denied; choose another folder with --out"
    ):
        run(tmp_path / "shapes", *FEW)


def test_captions_are_spoken_by_espeak(tmp_path, monkeypatch):
    (tmp_path / "espeak-ng").write_text(WHISTLE.format(python=sys.executable))
    (tmp_path / "espeak-ng").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    run(tmp_path / "out", *FEW, "--speak", "de")
    files = contents(tmp_path / "out")
    assert len(files) == 34 + 31
    for row in rows(files["valid.jsonl"]):
        assert files[row["sound"]].startswith(b"RIFF")
        assert files[row["sound"]].endswith(row["de"].encode() * 2)


def test_without_espeak_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt install espeak-ng"):
        run(tmp_path / "out", *FEW, "--speak", "en")
    assert not (tmp_path / "out").exists()


def test_without_pillow_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'heedful\[image\]'"):
        run(tmp_path / "out", *FEW)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--train", "--valid", "--test"])
def test_more_pictures_than_there_are_captions_are_refused(option, tmp_path):
    with pytest.raises(InputError, match=rf"{option} must be at most \S+, but is 2,000,000"):
        run(tmp_path / "out", option, 2_000_000)
    assert not (tmp_path / "out").exists()
