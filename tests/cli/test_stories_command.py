"""`heedful stories`: documents that are always the same, and a folder that is never mixed up."""

import hashlib
from functools import partial

import pytest
from invocation import invoke

from heedful.errors import InputError

FEW = ("--train", 23, "--valid", 3, "--test", 5)

run = partial(invoke, "stories")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_each_part_is_a_file_with_a_story_a_paragraph(tmp_path):
    out = tmp_path / "some" / "stories"
    result = run("--out", out, *FEW)
    files = contents(out)
    paragraphs = {name: text.decode().removesuffix("\n").split("\n\n") for name, text in files.items()}
    assert {name: len(told) for name, told in paragraphs.items()} == {"train.txt": 23, "valid.txt": 3, "test.txt": 5}
    assert len({story for told in paragraphs.values() for story in told}) == 31
    assert "23 stories to train on, 3 for validation, 5 for test" in result.output
    assert paragraphs["test.txt"][0].split(". ")[0] in result.output
    assert f"next:\n  heedful init {out}\n" in result.output
    assert 'documents = "paragraph"' in result.output


def test_the_files_of_a_seed_never_change(tmp_path):
    run("de", "--out", tmp_path, *FEW, "--seed", 2)
    digest = hashlib.sha256()
    for name, text in sorted(contents(tmp_path).items()):
        digest.update(name.encode() + text)
    assert digest.hexdigest() == "7be564ead0490dda445ffe542fe4a5d1aa43fd6911c99eb9563e81281e4e18fa"


def test_the_same_command_finishes_what_was_interrupted(tmp_path):
    run("zh", "--out", tmp_path, *FEW)
    before = contents(tmp_path)
    (tmp_path / "valid.txt").unlink()
    run("zh", "--out", tmp_path, *FEW)
    assert contents(tmp_path) == before


def test_another_seed_does_not_replace_stories(tmp_path):
    run("--out", tmp_path, *FEW)
    before = contents(tmp_path)
    with pytest.raises(
        InputError, match=r"contains a different train\.txt, as with another size or seed; choose an empty"
    ):
        run("--out", tmp_path, *FEW, "--seed", 2)
    assert contents(tmp_path) == before


def test_unknown_languages_write_nothing(tmp_path):
    with pytest.raises(InputError, match="unknown language 'fr'; choose one of en, de, zh"):
        run("fr", "--out", tmp_path / "stories", *FEW)
    assert not (tmp_path / "stories").exists()


def test_facts_are_tables_of_stories_with_their_summaries_and_dialogues(tmp_path):
    result = run("de", "--facts", "--out", tmp_path, *FEW)
    files = contents(tmp_path)
    assert {name: len(text.splitlines()) for name, text in files.items()} == {
        "train.jsonl": 23,
        "valid.jsonl": 3,
        "test.jsonl": 5,
    }
    assert f"for dialogue: heedful init {tmp_path}\n" in result.output
    assert "--task summarisation --source-field story --target-field summary" in result.output
    digest = hashlib.sha256(b"".join(text for _, text in sorted(files.items())))
    assert digest.hexdigest() == "a5997677ce147a2aa31bebfdb1582b3ffd9507844f708a207581fbed3ba44a40"


def test_stories_and_their_facts_have_folders_of_their_own(tmp_path):
    run("--out", tmp_path, *FEW)
    with pytest.raises(InputError, match=r"contains test\.txt|contains train\.txt|contains valid\.txt"):
        run("--facts", "--out", tmp_path, *FEW)
