"""Image, audio and video files: list those that a command reads, decode them, and report the unreadable ones."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import typer

from heedful.cli.inputs import columns_of
from heedful.cli.output import warn
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.readers.columns import columns_of as columns_in
from heedful.data.readers.files import made_folders
from heedful.data.readers.labelled import is_table
from heedful.data.readers.rows import names_columns
from heedful.data.readers.text_columns import TextRequest, choose_columns, header_candidates
from heedful.errors import InputError
from heedful.storage.paths import no_file, nothing_at
from heedful.wording import either, part_of

if TYPE_CHECKING:
    from heedful.checkpoint import LoadedModel
    from heedful.data.readers.media_files import MediaFile

T = TypeVar("T")
F = TypeVar("F")

SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Skip files that cannot be read, list them, and still exit with code 0."),
]
Truncated = Annotated[bool, typer.Option("--truncated", help="Read what is left of truncated audio files and images.")]
TruncatedImages = Annotated[bool, typer.Option("--truncated", help="Read what is left of truncated images.")]
Channel = Annotated[
    int | None,
    typer.Option(
        min=1, help="Channel to read from each audio file, counted from 1.", show_default="the mean of all channels"
    ),
]


@dataclass(frozen=True)
class FileOptions:
    """Options for how a command reads image, audio or video files."""

    skip_bad: bool = False
    truncated: bool = False
    channel: int | None = None

    def check(self, model: str, recipe: "Recipe") -> None:
        """Reject options for kinds of files that the model does not read."""
        from heedful.data.readers.media_files import NOUNS

        modalities = {
            "--skip-bad": (self.skip_bad, ("image", "audio", "video")),
            "--truncated": (self.truncated, ("image", "audio")),
            "--channel": (self.channel is not None, ("audio",)),
        }
        for option, (is_set, supported) in modalities.items():
            if is_set and recipe.data.modality not in supported:
                raise InputError(
                    f"{option} is for {either(supported)} models, but {model} reads "
                    f"{NOUNS.get(recipe.data.modality, 'text')}; leave it out"
                )

    def applied(self, model: str, loaded: "LoadedModel") -> "LoadedModel":
        """Return the model with its recipe changed by these options."""
        return replace(loaded, recipe=self.recipe(model, loaded.recipe))

    def recipe(self, model: str, recipe: "Recipe") -> "Recipe":
        """Return the recipe changed by these options, after checking that they apply to the model."""
        self.check(model, recipe)
        if self.truncated:
            recipe = replace(recipe, data=replace(recipe.data, truncated_files="read"))
        if self.channel is not None:
            recipe = replace(recipe, audio=replace(recipe.audio, channel=self.channel))
        return recipe


class ReadFiles(Generic[F, T]):
    """Iterable that decodes files one by one; files that cannot be read are left out, and reported at the end."""

    def __init__(self, files: Sequence[F], decode: Callable[[F], T]) -> None:
        self.files = files
        self.decode = decode
        self.read: list[F] = []  # files decoded so far
        self.indices: list[int] = []  # their indices among all files
        self.bad: list[str] = []  # errors about the others

    def __iter__(self) -> Iterator[T]:
        for index, file in enumerate(self.files):
            try:
                decoded = self.decode(file)
            except InputError as error:
                self.bad.append(str(error))
            else:
                self.read.append(file)
                self.indices.append(index)
                yield decoded

    def check(self, *, skip_bad: bool) -> None:
        check_bad_files(self.bad, len(self.files), skip_bad=skip_bad)


def check_bad_files(bad: Sequence[str], count: int, *, skip_bad: bool) -> None:
    """Report which of `count` files could not be read, once the others are done; raise an error unless `skip_bad`."""
    if not bad:
        return
    message = f"{part_of(len(bad), count, 'files')} could not be read:" + "".join(f"\n  {one}" for one in bad)
    if skip_bad:
        warn(message)
    else:
        done = "\n  the others are done; --skip-bad skips such files" if len(bad) < count else ""
        raise InputError(f"{message}{done}")


def named_files(names: Sequence[str] | None, recipe: "Recipe") -> list[Path]:
    """List the files given on the command line: files, all suitable files below folders, and files listed in tables.

    "-" stands for names on standard input, one per line. The recipe determines which files a folder contributes, and
    which table column contains file names. All bad names are reported in one error, with one line for each.
    """
    from heedful.data.readers.media_files import ENDINGS, NOUNS, files_below, other_files

    modality = recipe.data.modality
    names = [each for name in names or () for each in (names_on_stdin() if name == "-" else [name])]
    if not names:
        raise InputError(f"the model reads {NOUNS[modality]}; give files, folders of them, or a table of files")
    files: list[Path] = []
    problems = []
    for path in map(Path, names):
        if not path.exists():
            problems.append(nothing_at(path, f"check the path; the model reads {NOUNS[modality]}"))
        elif path.is_dir():
            note_made_folders(path)
            if others := other_files(path, modality):
                warn(others)
            files += (below := files_below(path, recipe.data))
            if not below:
                problems.append(
                    f"{path}: no file below this folder ends in {either(ENDINGS[modality])}; choose another folder"
                )
        elif is_table(path):
            files += (file.path for file in rows_of_files(path, recipe, has_option=False))
        else:
            files.append(path)
    if problems:
        raise InputError("\n  ".join(problems))
    return files


def names_on_stdin() -> list[str]:
    """Read file names from standard input, one per line; if it is closed or a terminal, return an empty list."""
    if sys.stdin is None or sys.stdin.isatty():
        return []
    lines = (os.fsdecode(line) for line in sys.stdin.buffer.read().split(b"\n"))
    # A carriage return or a space belongs to the name only if a file has this name.
    return [line if Path(line).exists() else line.strip() for line in lines if line.strip()]


def note_made_folders(folder: Path) -> None:
    """Report on standard error which folders below a folder are runs, models or recipes, and so are not read."""
    if folders := made_folders(folder):
        names = ", ".join(map(str, folders[:3])) + ", ..." * (len(folders) > 3)
        warn(f"not read, because they contain runs, models or recipes: {names}")


def rows_of_files(
    table: Path, recipe: "Recipe", column: str | None = None, *, has_option: bool = True
) -> "list[MediaFile]":
    """List the files in a column of a table, by default the one that `column_of_files` finds; classes are not read.

    `has_option` is True if the user can choose the column with --column.
    """
    from heedful.data.readers.media_files import media_files

    if not table.exists():
        raise InputError(no_file(table))
    corpus = CorpusConfig(source=str(table), source_field=column_of_files(table, recipe, column, has_option=has_option))
    files = list(media_files(corpus, replace(recipe.data, labelled=False, root=".")))
    if not files:
        raise InputError(f"{table}: has no rows with file names; give a table with a file name in each row")
    return files


def column_of_files(table: Path, recipe: "Recipe", column: str | None, *, has_option: bool) -> str:
    """Return the table column with file names: `column`, the recipe's column, or one whose values look like file names.

    The values are examined if the table's header does not have the recipe's column, or if the recipe gives a column
    number. A column found in this way is reported on standard error, unless it is the first one and the recipe gives a
    number.
    """
    from heedful.tools.proposals.media_survey import file_column

    own = columns_of(recipe).source_field
    if column:
        return choose_columns(table, TextRequest((own,), (column,))).fields[0]
    if names_columns((own,), header_candidates(table)):
        return own
    columns = columns_in(table, DataConfig())
    guess = file_column(columns, (recipe.data.modality,)) if recipe.data.modality != "text" else None
    if guess is None and len(columns) > 1 and not own.isdecimal() and recipe.data.modality != "text":
        raise InputError(
            f"{table}: no column is named {own!r}, and none contains names of {recipe.data.modality} files; it has "
            f"{', '.join(repr(each.name) for each in columns[:20])}. "
            + ("Give the column of the files with --column" if has_option else f"Name the column of the files {own!r}")
        )
    if guess is None or guess[0] == own:
        return own
    if guess[0] != columns[0].name or not own.isdecimal():
        remedy = "" if own.isdecimal() else f"; to use another, name it {own!r}"
        remedy = "; choose another with --column" if has_option else remedy
        warn(f"{table}: files are read from column {guess[0]!r}{remedy}")
    return guess[0]
