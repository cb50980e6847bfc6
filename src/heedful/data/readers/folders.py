"""Folders of a user's files: what stands below them, links followed, and nothing left out because it cannot be read."""

from collections.abc import Iterator
from os import DirEntry, scandir
from os.path import exists
from pathlib import Path

from heedful.errors import InputError


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files anywhere below a folder, folder by folder, by name; hidden files and folders are left out.

    Links to files and folders are followed, but for a link to a folder that holds it.

    Raises:
        InputError: A folder cannot be read, or a link leads to what is not there.
    """
    yield from _below(folder, (folder.resolve(),))


def visible_folders(folder: Path) -> list[Path]:
    """List the folders in a folder, and links to such, by name; hidden ones are left out.

    Raises:
        InputError: The folder cannot be read, or a link in it leads to what is not there.
    """
    return [Path(entry.path) for entry, is_folder in _entries(folder) if is_folder]


def _below(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    for entry, is_folder in _entries(folder):
        path = Path(entry.path)
        if not is_folder:
            yield path
        elif (real := path.resolve()) not in above:
            yield from _below(path, (*above, real))


def _entries(folder: Path) -> list[tuple[DirEntry[str], bool]]:
    """List the visible files and folders in a folder, by name, and whether each is a folder."""
    try:
        with scandir(folder) as entries:
            visible = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
            if lost := next((entry for entry in visible if entry.is_symlink() and not exists(entry.path)), None):
                raise InputError(f"{lost.path}: this link leads to what is not there; mend it, or take it out")
            return [(entry, entry.is_dir()) for entry in visible if entry.is_dir() or entry.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror or error})") from error
