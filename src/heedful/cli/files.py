"""Files of pictures or sounds that a command reads: found, decoded one by one, and told of if they cannot be read."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import typer

from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import DataConfig

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


def named_files(names: Sequence[str] | None, data: "DataConfig") -> list[Path]:
    """List the files that are named on the command line, and those below folders that are named.

    Raises:
        InputError: None is named, there is no such file or folder, or a folder holds no files of the right kind; the
            message has a line for each.
    """
    from heedful.data.media_files import ENDINGS, NOUNS, files_below

    if not names:
        raise InputError(f"the model reads {NOUNS[data.modality]}: name files, or folders of them")
    found: list[Path] = []
    problems = []
    for name in names:
        path = Path(name)
        files = files_below(path, data) if path.is_dir() else [path]
        if not path.exists():
            problems.append(f"{name}: there is no such file or folder")
        elif not files:
            problems.append(f"{name}: no file below this folder ends in {', '.join(ENDINGS[data.modality])}")
        found += files
    if problems:
        raise InputError("\n  ".join(problems))
    return found
