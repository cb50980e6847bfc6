"""A recipe folder is written whole or not at all, and what is refused is not proposed before."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from invocation import invoke
from PIL import Image
from typer.testing import CliRunner

from heedful.cli import app, first_recipe
from heedful.config.load import load_recipe
from heedful.errors import InputError, RunError
from heedful.storage.disk import DISK

WORDS = ["red", "blue", "small", "large", "old", "new", "quick", "slow", "warm", "cold", "loud"]
TEXTS = [f"the {a} dog and the {b} cat" for a in WORDS for b in WORDS]
COMMANDS = {
    "classification": ["moods.tsv"],
    "translation": ["a.en", "a.de"],
    "language_model": ["a.en"],
    "a copied text": ["texts.json"],
    "tagging": ["names.conll"],
    "images": ["pictures"],
}


class Killed(BaseException):
    """Stands for the end of the process at the n-th change of the disk."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moods.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{'ab'[i % 2]}\n" for i, t in enumerate(TEXTS)))
    Path("a.en").write_text("".join(f"{text}\n" for text in TEXTS))
    Path("a.de").write_text("".join(f"{text.upper()}\n" for text in TEXTS))
    Path("texts.json").write_text(str(TEXTS).replace("'", '"'))
    Path("names.conll").write_text(
        "".join(f"Ann B-x\nsees O\n{text.split()[1]}{n} O\n\n" for n, text in enumerate(TEXTS))
    )
    for number in range(24):
        Path("pictures", "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), number * 9).save(Path("pictures", "ab"[number % 2], f"{number}.png"))
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder whose names are not hidden."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def is_killed(stop: int, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> bool:
    """Run `init`, and end it before the rename of this number, from 0, without tidying up; False if it has no such."""
    renames = iter(range(stop))

    def rename(self: object, source: Path, target: Path) -> None:
        if next(renames, None) is None:
            raise Killed
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(DISK), "rename", rename)
        patch.setattr(Path, "rename", lambda source, target: rename(None, source, target))
        patch.setattr("heedful.storage.atomic.remove", lambda *_: None)
        try:
            invoke("init", *arguments)
        except Killed:
            return True
    return False


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_there", [False, True], ids=["new folder", "folder with files"])
@pytest.mark.parametrize("case", COMMANDS)
def test_a_killed_init_leaves_a_whole_recipe_or_none_and_the_next_one_works(
    case: str, is_there: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = COMMANDS[case]

    def begin(name: str) -> Path:
        if is_there:
            Path(name).mkdir()
            Path(name, "mine.txt").write_text("mine")
        return Path(name)

    whole = begin("whole")
    invoke("init", *given, "--out", "whole")
    expected = contents(whole)
    assert "config.toml" in expected
    stop, out = 0, begin("out0")
    while is_killed(stop, monkeypatch, *given, "--out", str(out)):
        assert "config.toml" not in contents(out)
        assert out.exists() == is_there
        if (out / first_recipe.COMPLETE).is_dir():  # it was whole already: the next one moves it up
            with pytest.raises(InputError, match=r"config.toml already exists"):
                invoke("init", *given, "--out", str(out))
        else:
            invoke("init", *given, "--out", str(out))
        made = contents(out)
        assert made.keys() == expected.keys()
        assert {name for name in made if made[name] != expected[name]} <= {"config.toml"}  # it has the folder's name
        assert not [path for path in Path().rglob(".*") if path.parent in (Path(), out)]
        stop, out = stop + 1, begin(f"out{stop + 1}")
    assert stop > 1


def test_a_disk_that_is_full_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("heedful.cli.init_labelled.write", full)
        with pytest.raises(RunError, match=r"out: cannot be written \(No space left"):
            invoke("init", "moods.tsv", "--out", "out")
    assert not [path for path in folder.iterdir() if "out" in path.name]


def prices(numbers: list[str]) -> str:
    rows = [("text", "price"), *zip(TEXTS, numbers, strict=False)]
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


REFUSED = {
    "too few texts": (
        "few.tsv",
        "text\tlabel\na b c\tx\nd e f\ty\ng h i\tx\nj k l\ty\nm n o\tx\np q r\ty\n",
        "too few",
    ),
    "commas that are unclear": ("price.csv", prices([f"{n % 9 + 101},{n:03}" for n in range(99)]), "have commas"),
    "a text that is too short": ("short.txt", "A little text.\n" * 9, "too little text to train on"),
    "equal sides": ("same.tsv", "".join(f"{text}\t{text}\n" for text in TEXTS), "both sides are identical"),
    "an output folder that is taken": ("moods.tsv", "", "already exists"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_proposed_of_what_is_refused(case: str, folder: Path) -> None:
    name, text, message = REFUSED[case]
    options = ["--task", "translation"] if case == "equal sides" else []
    if text:
        Path(name).write_text(text)
    else:
        Path("out").mkdir()
        Path("out/config.toml").write_text("")
    result = CliRunner().invoke(app, ["init", name, "--out", "out", *options])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert not result.stdout
    assert Path("out").exists() == (not text)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("answers", ["1", "9\nx\n2"], ids=["the first", "the second, after wrong answers"])
def test_where_it_is_unsure_it_asks_on_a_terminal(answers: str, folder: Path) -> None:
    import pty

    with Path("two.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(zip(TEXTS, ["good", "bad"] * 61, ["a", "b", "c"] * 41, strict=False))
    ours, theirs = pty.openpty()
    os.write(ours, f"{answers}\n".encode())
    command = [sys.executable, "-m", "heedful", "init", "two.csv", "--out", "out"]
    process = subprocess.run(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, timeout=100, check=False)
    os.close(theirs)
    asked = b""
    try:
        while piece := os.read(ours, 4096):
            asked += piece
    except OSError:  # Linux reports the end of a terminal so
        pass
    os.close(ours)
    assert process.returncode == 0, asked
    assert b"which model should the recipe train?" in asked
    offered = dict(re.findall(r"(\d): a classifier: texts in '1', classes in '(\d)'", asked.decode()))
    assert sorted(offered.values()) == ["2", "3"]
    assert load_recipe("out").data.train[0].target_field == offered[answers[-1]]
