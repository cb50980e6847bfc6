"""What stands below a folder: all of it, through links too, or an error."""

from pathlib import Path

import pytest

from heedful.data.readers import files as folders
from heedful.data.readers.files import made_folders, visible_files, visible_folders
from heedful.errors import InputError


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in visible_files(folder)]


def test_files_come_folder_by_folder_and_hidden_ones_are_left_out(tmp_path):
    tree(tmp_path, "b/1", "a/c/2", "a/.d/3", ".e/4", "a/.f", "a/g")
    assert names(tmp_path) == ["a/c/2", "a/g", "b/1"]
    assert [path.name for path in visible_folders(tmp_path)] == ["a", "b"]


def test_links_are_followed_but_not_in_circles(tmp_path):
    tree(tmp_path, "all/a/1", "all/b/2", "elsewhere/3", "elsewhere/deep/4")
    (tmp_path / "all/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "all/file").symlink_to(tmp_path / "elsewhere/3")
    (tmp_path / "all/again").symlink_to(tmp_path / "all/a")
    (tmp_path / "all/b/up").symlink_to(tmp_path / "all")
    assert names(tmp_path / "all") == ["a/1", "again/1", "b/2", "file", "link/3", "link/deep/4"]
    assert [path.name for path in visible_folders(tmp_path / "all")] == ["a", "again", "b", "link"]


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    tree(tmp_path, "all/a/1")
    (tmp_path / "all/b").symlink_to(tmp_path / "unmounted")
    for read in (names, visible_folders):
        with pytest.raises(InputError, match="all/b: broken link: its target does not exist; fix or remove it"):
            read(tmp_path / "all")


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    tree(tmp_path, "a/1", "b/locked/2")
    scandir = folders.scandir

    def forbidding(folder: Path) -> object:
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(folders, "scandir", forbidding)
    with pytest.raises(InputError, match=r"b/locked: the folder cannot be read \(Permission denied\)"):
        names(tmp_path)
    with pytest.raises(InputError, match="missing: the folder cannot be read"):
        visible_folders(tmp_path / "missing")


MADE = {
    "run": {"heedful.lock": "", "log.jsonl": '{"update": 1}\n', "checkpoints/best.json": "{}"},
    "old run": {"log.jsonl": '{"update": 1}\n', "checkpoints/best.json": "{}"},
    "model": {"recipe.json": "{}", "model.safetensors": "", "tokenizer/joint/vocab.txt": "a"},
    "model of another toolkit": {"config.json": "{}", "pytorch_model.bin": "", "vocab.txt": "a"},
    "recipe": {"config.toml": 'task = "language_model"\n[[data.train]]\nsource = "../a.txt"\n', "data/train.txt": "a"},
}


@pytest.mark.parametrize("name", MADE)
def test_what_heedful_made_is_not_read_with_the_folder_that_holds_it(tmp_path, name):
    tree(tmp_path, "a.txt", "deep/b.txt")
    for file, text in MADE[name].items():
        tree(tmp_path / "deep" / name, file)
        (tmp_path / "deep" / name / file).write_text(text)
    assert names(tmp_path) == ["a.txt", "deep/b.txt"]
    assert visible_folders(tmp_path / "deep") == []
    assert made_folders(tmp_path) == [tmp_path / "deep" / name]


@pytest.mark.parametrize("text", ['title = "My site"\n', "not TOML\n", "\0"])
def test_settings_of_another_program_do_not_hide_a_folder(tmp_path, text):
    tree(tmp_path, "site/config.toml", "site/log.jsonl", "site/page.md")
    (tmp_path / "site/config.toml").write_text(text)
    assert names(tmp_path) == ["site/config.toml", "site/log.jsonl", "site/page.md"]
    assert made_folders(tmp_path) == []
