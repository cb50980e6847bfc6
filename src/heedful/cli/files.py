"""Files of pictures or sounds that a command reads: found, decoded one by one, and told of if they cannot be read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import typer

from heedful.cli.tables import columns_of
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe

T = TypeVar("T")


class ReadFiles(Generic[T]):
    """Files that are decoded one after another; a bad one is told of on standard error, and left out.

    Args:
        files: The files.
        decode: Decodes a file, or raises an InputError.

    Attributes:
        read: The files that were decoded so far.
        bad: The errors of the others.
    """

    def __init__(self, files: Sequence[Path], decode: Callable[[Path], T]) -> None:
        self.files = files
        self.decode = decode
        self.read: list[Path] = []
        self.bad: list[InputError] = []

    def __iter__(self) -> Iterator[T]:
        for file in self.files:
            try:
                decoded = self.decode(file)
            except InputError as error:
                self.bad.append(error)
                typer.echo(f"heedful: {error}", err=True)
            else:
                self.read.append(file)
                yield decoded

    def check(self) -> None:
        """Check that no file was bad.

        Raises:
            InputError: Some were.
        """
        if self.bad:
            raise InputError(f"{counted(len(self.bad), 'files')} of {len(self.files):,} could not be read, see above")


def named_files(names: Sequence[str] | None, recipe: "Recipe") -> list[Path]:
    """List the files that are named on the command line, those below folders, and those that tables name.

    Args:
        names: Files, folders and tables.
        recipe: The recipe of the model, which says what it reads, and which column of a table names files.

    Raises:
        InputError: None is named, there is no such file or folder, or a folder holds no files of the right kind; the
            message has a line for each. Or a table cannot be read.
    """
    from heedful.data.media.media_files import ENDINGS, NOUNS

    modality = recipe.data.modality
    if not names:
        raise InputError(f"the model reads {NOUNS[modality]}: name files, folders of them, or a table of files")
    found: list[Path] = []
    problems = []
    for name in names:
        path = Path(name)
        if not path.exists():
            problems.append(f"{name}: there is no such file or folder")
        elif files := files_at(path, recipe):
            found += files
        else:
            problems.append(f"{name}: no file below this folder ends in {', '.join(ENDINGS[modality])}")
    if problems:
        raise InputError("\n  ".join(problems))
    return found


def files_at(path: Path, recipe: "Recipe") -> list[Path]:
    """List the files below a folder, those that a table names, or the one file itself.

    Raises:
        InputError: A table cannot be read.
    """
    from heedful.data.media.media_files import files_below
    from heedful.data.readers.unlabelled import is_table

    if path.is_dir():
        note_made_folders(path)
        return files_below(path, recipe.data)
    return files_in_table(path, recipe) if is_table(path) else [path]


def note_made_folders(folder: Path) -> None:
    """Report the folders of runs, models and recipes below a folder, which are not read, on standard error.

    Raises:
        InputError: A folder cannot be read.
    """
    from heedful.data.readers.folders import made_folders

    if made := made_folders(folder):
        shown = ", ".join(map(str, made[:3])) + ", ..." * (len(made) > 3)
        typer.echo(f"heedful: not read, as they hold runs, models or recipes: {shown}", err=True)


def files_in_table(table: Path, recipe: "Recipe", field: str | None = None) -> list[Path]:
    """List the files that a column of a table names, or else the column that the recipe names; classes are not read.

    Raises:
        InputError: There is no such table, it cannot be read, has no such column, or no rows.
    """
    from heedful.config.schema import CorpusConfig
    from heedful.data.media.media_files import media_files

    if not table.exists():
        raise InputError(f"{table}: there is no such file")
    corpus = CorpusConfig(source=str(table), source_field=field or columns_of(recipe).source_field)
    found = [file.path for file in media_files(corpus, replace(recipe.data, labelled=False, root="."))]
    if not found:
        raise InputError(f"{table}: has no rows that name files")
    return found
