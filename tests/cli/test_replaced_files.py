"""No command replaces a file or folder that heedful did not write, unless --force is given."""

import shlex
import shutil
from pathlib import Path

import pytest

from cli.invocation import invoke
from heedful.errors import InputError

FILES = {  # commands that write a file, and the file
    "translate 'A dog barks.' --output out.de": "out.de",
    "write 'A dog barks.' --model en-de --output out.de": "out.de",
    "evaluate en-de --source few.en --reference few.en --output out.de": "out.de",
    "attention 'A dog barks.' --out out.svg": "out.svg",
    "inspect en-de 'A dog barks.' --out out.html": "out.html",
    "vectors export out.vec --model words.txt": "out.vec",
    "vectors plot --model words.txt --out out.svg": "out.svg",
}
FOLDERS = ("export en-de out", "convert en-de --out out --to marian")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("few.en").write_text("A dog barks.\n")
    Path("words.txt").write_text("cat 1 2 3\ndog 2 3 1\nhen 3 1 2\nowl 1 1 2\n")
    return tmp_path


@pytest.mark.parametrize(("command", "name"), FILES.items())
def test_a_file_of_another_is_replaced_with_force_only(command, name):
    Path(name).write_text("mine")
    with pytest.raises(InputError, match=f"{name}: already exists.*--force"):
        invoke(*shlex.split(command))
    assert Path(name).read_text() == "mine"
    assert invoke(*shlex.split(command), "--force").exit_code == 0
    assert Path(name).read_text() != "mine"


@pytest.mark.parametrize(("command", "name"), FILES.items())
def test_a_file_that_a_command_wrote_is_replaced_until_somebody_changes_it(command, name):
    for _ in range(2):
        assert invoke(*shlex.split(command)).exit_code == 0
    with Path(name).open("a") as changed:
        changed.write("checked by me")
    with pytest.raises(InputError, match="--force"):
        invoke(*shlex.split(command))
    assert Path(name).read_text().endswith("checked by me")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nothing_is_lost_with_an_empty_file_or_a_device(force):
    Path("out.de").touch()
    for name in ("out.de", "/dev/null"):
        assert invoke("translate", "A dog barks.", "--output", name, *force).exit_code == 0
    assert Path("out.de").read_text() == "Ein Hund bellt.\n"


def test_force_does_not_replace_what_is_read():
    with pytest.raises(InputError, match="is also the input"):
        invoke("translate", "--input", "few.en", "--output", "few.en", "--force")


def test_force_is_for_one_command():
    invoke("translate", "A dog barks.", "--output", "out.de", "--force")
    Path("out.de").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        invoke("translate", "A dog barks.", "--output", "out.de")


def test_without_a_place_for_notes_each_file_counts_as_that_of_another(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert invoke("translate", "A dog barks.", "--output", "out.de").exit_code == 0
    with pytest.raises(InputError, match="--force"):
        invoke("translate", "A dog barks.", "--output", "out.de")


@pytest.mark.parametrize("content", [["notes.txt"], ["model.safetensors"], ["manifest.json"], ["tokenizer/a.txt"]])
@pytest.mark.parametrize("command", FOLDERS)
def test_a_folder_of_another_is_replaced_with_force_only(command, content):
    for name in content:
        (Path("out") / name).parent.mkdir(parents=True)
        (Path("out") / name).write_text("mine")
    with pytest.raises(InputError, match=r"out: already exists.*--force"):
        invoke(*shlex.split(command))
    assert all((Path("out") / name).read_text() == "mine" for name in content)
    arguments = ["export", "en-de", "out"]  # the bundled model is not one that Marian has
    assert invoke(*arguments, "--force").exit_code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "README.md",
        "manifest.json",
        "model.safetensors",
        "recipe.json",
        "tokenizer",
    ]
    assert invoke(*arguments).exit_code == 0
    assert [path.name for path in Path().glob(".*")] == []


def test_a_model_in_which_something_was_changed_or_added_is_not_replaced():
    invoke("export", "en-de", "out")
    invoke("export", "en-de", "out")
    (Path("out") / "README.md").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        invoke("export", "en-de", "out")
    (Path("out") / "README.md").rename("out/tokenizer/README.md")
    with pytest.raises(InputError, match="--force"):
        invoke("export", "en-de", "out")


@pytest.mark.parametrize("command", ["export en-de {}", "convert en-de --to marian --out {}"])
def test_force_does_not_remove_the_folder_of_the_user_or_the_current_one(command, folder, monkeypatch):
    (folder / "home" / "here").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder / "home"))
    for name in (".", str(folder), str(folder / "home"), str(folder.parent)):
        with pytest.raises(InputError, match="choose a folder in it"):
            invoke(*shlex.split(command.format(name)), "--force")
    shutil.rmtree(folder / "home")
