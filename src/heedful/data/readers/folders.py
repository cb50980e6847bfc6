"""Folders of a user's files: what is below them, links followed, and nothing left out because it cannot be read.

What heedful itself writes is not a user's file: the folder of a run, a model or a recipe below a folder is left out, or
the log of a run in books/run would be text of books.
"""

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from os import DirEntry, scandir
from os.path import exists
from pathlib import Path

from heedful.errors import InputError

RUN = "heedful.lock"  # is in the folder of a run from its beginning
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.bin")
DESCRIPTIONS = ("recipe.json", "config.json", "source_vocabulary.txt", "shared_vocabulary.txt")  # or of other toolkits
RECIPE = "config.toml"
RECIPE_KEYS = {"data", "task", "preset", "model"}  # of which a recipe has one or more


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files anywhere below a folder, folder by folder, by name; hidden files and folders are left out.

    So are the folders that heedful made, which `made_folders` lists. Links to files and folders are followed, but for a
    link to a folder that holds it.

    Raises:
        InputError: A folder cannot be read, or a link leads to what is not there.
    """
    yield from _below(folder, (folder.resolve(),))


def visible_folders(folder: Path) -> list[Path]:
    """List the folders in a folder, and links to such, by name; hidden ones and those of heedful are left out.

    Raises:
        InputError: The folder cannot be read, or a link in it leads to what is not there.
    """
    return [Path(entry.path) for entry, is_folder in _entries(folder) if is_folder]


def made_folders(folder: Path) -> list[Path]:
    """List the folders of runs, models and recipes below a folder, which are not read with it.

    Raises:
        InputError: A folder cannot be read, or a link leads to what is not there.
    """
    return list(_made_below(folder, (folder.resolve(),)))


def is_made(folder: Path) -> bool:
    """True if heedful made a folder: it holds a run, a model (that of another toolkit, too) or a recipe."""
    if (folder / RUN).is_file() or ((folder / "log.jsonl").is_file() and (folder / "checkpoints").is_dir()):
        return True
    if any((folder / name).is_file() for name in WEIGHTS) and any((folder / name).is_file() for name in DESCRIPTIONS):
        return True
    with suppress(OSError, ValueError):  # another program's, or none
        return not RECIPE_KEYS.isdisjoint(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")))
    return False


def _below(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    for entry, is_folder in _entries(folder):
        path = Path(entry.path)
        if not is_folder:
            yield path
        elif (real := path.resolve()) not in above:
            yield from _below(path, (*above, real))


def _made_below(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    for entry, is_folder in _visible(folder):
        path = Path(entry.path)
        if is_folder and is_made(path):
            yield path
        elif is_folder and (real := path.resolve()) not in above:
            yield from _made_below(path, (*above, real))


def _entries(folder: Path) -> list[tuple[DirEntry[str], bool]]:
    """List the visible files and folders in a folder, by name, and whether each is a folder; none that heedful made."""
    return [
        (entry, is_folder) for entry, is_folder in _visible(folder) if not (is_folder and is_made(Path(entry.path)))
    ]


def _visible(folder: Path) -> list[tuple[DirEntry[str], bool]]:
    try:
        with scandir(folder) as entries:
            visible = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
            if lost := next((entry for entry in visible if entry.is_symlink() and not exists(entry.path)), None):
                raise InputError(f"{lost.path}: this link leads to what is not there; mend it, or take it out")
            return [(entry, entry.is_dir()) for entry in visible if entry.is_dir() or entry.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror or error})") from error
