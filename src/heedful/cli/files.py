"""Files of images, audio or videos that a command reads: listed, decoded, and named if they cannot be read."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from heedful.cli.inputs import columns_of
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.readers.columns import columns_of as columns_in
from heedful.data.readers.files import made_folders
from heedful.data.readers.labelled import is_table
from heedful.data.readers.rows import names_columns
from heedful.data.readers.text_columns import first_names
from heedful.errors import InputError
from heedful.storage.paths import no_file, nothing_at
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.checkpoint import LoadedModel
    from heedful.data.readers.media_files import MediaFile
    from heedful.tasks.task import Task

T = TypeVar("T")

SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out files that cannot be read, name them, and exit with 0 all the same."),
]
Truncated = Annotated[
    bool, typer.Option("--truncated", help="Read what is there of sounds and images that are cut off.")
]
Channel = Annotated[
    int | None,
    typer.Option(min=1, help="Channel of each sound to read, from 1.", show_default="the mean of all channels"),
]


@dataclass(frozen=True)
class FileOptions:
    """Options of a command that say how it reads files of images, sounds or videos."""

    skip_bad: bool = False
    truncated: bool = False
    channel: int | None = None

    def check(self, model: str, recipe: "Recipe") -> None:
        """Refuse options about files that the model does not read."""
        kinds = {
            "--skip-bad": (self.skip_bad, ("image", "audio", "video")),
            "--truncated": (self.truncated, ("image", "audio")),
            "--channel": (self.channel is not None, ("audio",)),
        }
        for option, (is_set, modalities) in kinds.items():
            if is_set and recipe.data.modality not in modalities:
                raise InputError(f"{option}: {model} reads {recipe.data.modality}, for which there is no such option")

    def applied(self, model: str, loaded: "LoadedModel") -> "LoadedModel":
        """Return a model that reads files as the options say."""
        self.check(model, loaded.recipe)
        recipe = loaded.recipe
        if self.truncated:
            recipe = replace(recipe, data=replace(recipe.data, truncated_files="read"))
        if self.channel is not None:
            recipe = replace(recipe, audio=replace(recipe.audio, channel=self.channel))
        return replace(loaded, recipe=recipe)


@dataclass
class ScoredFiles:
    """Files of a test set: how they are read, what is wrong with each that cannot be read, and the number of all."""

    options: FileOptions
    bad: dict[str, None] = field(default_factory=dict)
    count: int = 0

    @contextmanager
    def testing(
        self, loaded: "LoadedModel", data: "DataConfig", report: Callable[[str], None]
    ) -> "Iterator[Task[Any]]":
        """Set up the task of a model on the files of a test set that can be read; see `LoadedModel.testing`."""
        truncated = "read" if self.options.truncated else data.truncated_files
        lenient = replace(data, bad_files="skip_all", truncated_files=truncated)
        with loaded.testing(lenient, report) as task:
            examples = getattr(task.data, "examples", None)
            if examples is not None:
                bad = dict.fromkeys(examples.report.bad_files)
                self.bad |= bad
                self.count = len(bad) + len(examples.valid or ())
            yield task


class ReadFiles(Generic[T]):
    """Files that are decoded one after another; a bad one is left out, and named at the end."""

    def __init__(self, files: Sequence[Path], decode: Callable[[Path], T]) -> None:
        self.files = files
        self.decode = decode
        self.read: list[Path] = []  # decoded so far
        self.places: list[int] = []  # of these among all files
        self.bad: list[str] = []  # errors of the others

    def __iter__(self) -> Iterator[T]:
        for place, file in enumerate(self.files):
            try:
                decoded = self.decode(file)
            except InputError as error:
                self.bad.append(str(error))
            else:
                self.read.append(file)
                self.places.append(place)
                yield decoded

    def check(self, *, skip_bad: bool) -> None:
        """Name the bad files; see `check_bad_files`."""
        check_bad_files(self.bad, len(self.files), skip_bad=skip_bad)


def check_bad_files(bad: Sequence[str], count: int, *, skip_bad: bool) -> None:
    """Name all of `count` files that could not be read, at the end of a command that read the others.

    That is an error unless they are to be left out.
    """
    if not bad:
        return
    message = f"{counted(len(bad), 'files')} of {count:,} could not be read:" + "".join(f"\n  {one}" for one in bad)
    if not skip_bad:
        done = "\n  the others are done; --skip-bad leaves such files out" if len(bad) < count else ""
        raise InputError(f"{message}{done}")
    typer.echo(f"heedful: {message}", err=True)


def named_files(names: Sequence[str] | None, recipe: "Recipe") -> list[Path]:
    """List the files that are named on the command line, those below folders, and those that tables name.

    "-" stands for the names on the lines of standard input. The recipe of the model says what it reads, and which
    column of a table names files. The error about bad names has a line for each.
    """
    from heedful.data.readers.media_files import ENDINGS, NOUNS

    modality = recipe.data.modality
    names = [each for name in names or () for each in (names_on_stdin() if name == "-" else [name])]
    if not names:
        raise InputError(f"the model reads {NOUNS[modality]}: name files, folders of them, or a table of files")
    files: list[Path] = []
    problems = []
    for name in names:
        path = Path(name)
        if not path.exists():
            problems.append(nothing_at(path))
        elif some := files_at(path, recipe):
            files += some
        else:
            problems.append(f"{name}: no file below this folder ends in {', '.join(ENDINGS[modality])}")
    if problems:
        raise InputError("\n  ".join(problems))
    return files


def names_on_stdin() -> list[str]:
    """Read the names of files on standard input, one on a line; none if it is closed, or is a terminal.

    A carriage return or a space belongs to the name only if the file is there under this name.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return []
    lines = (os.fsdecode(line) for line in sys.stdin.buffer.read().split(b"\n"))
    return [line if Path(line).exists() else line.strip() for line in lines if line.strip()]


def files_at(path: Path, recipe: "Recipe") -> list[Path]:
    """List the files below a folder, those that a table names, or the one file itself."""
    from heedful.data.readers.media_files import files_below, other_files

    if path.is_dir():
        note_made_folders(path)
        if others := other_files(path, recipe.data.modality):
            typer.echo(f"heedful: {others}", err=True)
        return files_below(path, recipe.data)
    return [file.path for file in rows_of_files(path, recipe)] if is_table(path) else [path]


def note_made_folders(folder: Path) -> None:
    """Report the folders of runs, models and recipes below a folder, which are not read, on standard error."""
    if folders := made_folders(folder):
        names = ", ".join(map(str, folders[:3])) + ", ..." * (len(folders) > 3)
        typer.echo(f"heedful: not read, as they hold runs, models or recipes: {names}", err=True)


def rows_of_files(table: Path, recipe: "Recipe", column: str | None = None) -> "list[MediaFile]":
    """List the files that a column of a table names, or else the column that the recipe names; classes are not read."""
    from heedful.data.readers.media_files import media_files

    if not table.exists():
        raise InputError(no_file(table))
    corpus = CorpusConfig(source=str(table), source_field=column_of_files(table, recipe, column))
    files = list(media_files(corpus, replace(recipe.data, labelled=False, root=".")))
    if not files:
        raise InputError(f"{table}: has no rows that name files")
    return files


def column_of_files(table: Path, recipe: "Recipe", column: str | None) -> str:
    """Return the column of a table that names files: as the option or the recipe says, or whose values end like files.

    A recipe that names no column, or a number, means the first one of a table without a header; if another column has
    the files, such as where the class comes first, that one is read, and is named on standard error.
    """
    from heedful.tools.proposals.media_survey import file_column

    own = columns_of(recipe).source_field
    if column or names_columns((own,), first_names(table)):
        return column or own
    columns = columns_in(table, DataConfig())
    guess = file_column(columns, (recipe.data.modality,)) if recipe.data.modality != "text" else None
    if guess is None or guess[0] == own:
        return own
    if guess[0] != columns[0].name or not own.isdecimal():
        typer.echo(f"heedful: {table}: files are read from column {guess[0]!r}; name another with --column", err=True)
    return guess[0]
