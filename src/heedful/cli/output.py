"""Output of a command: a file that is written as a whole or not at all, or standard output."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from heedful.cli.options import refuse_file_in_the_way
from heedful.errors import InputError, Interrupted, RunError

if TYPE_CHECKING:
    from rich.table import Table

WIDEST = 1_000  # columns of a table
REPLACES: ContextVar[bool] = ContextVar("REPLACES", default=False)  # whether the command was given --force


def check_output(output: Path | None, *inputs: Path | None, option: str = "--output", kept: bool = False) -> None:
    """Make sure that an output file can be written, and overwrites neither an input file nor anybody else's file.

    Args:
        output: The file to write; None: nothing is written to a file.
        inputs: The files that are read; None: there is no such file.
        option: The option that named the output, for messages.
        kept: An existing file is read instead of replaced.

    Raises:
        InputError: The output is a folder, lies in no existing folder, or is an input, even under another name; or
            there is a file that heedful did not write, and `--force` is not given.
    """
    from heedful.storage.paths import likely
    from heedful.storage.written_files import is_foreign

    if output is None:
        return
    if output.is_dir():
        raise InputError(f"{option} {output}: is a folder; name a file, in a folder that is there")
    refuse_file_in_the_way(output.parent, f"{option} {output}")
    if not output.parent.is_dir():
        remedy = likely(output.parent, "make it, or name a file in a folder that is there", os.path.isdir)
        raise InputError(f"{option} {output}: there is no folder {output.parent}; {remedy}")
    for source in inputs:
        if source and source.exists() and output.exists() and output.samefile(source):
            raise InputError(f"{option} {output}: is read as {source} and would be overwritten; name another file")
    if not kept and is_foreign(output) and not REPLACES.get():
        raise InputError(
            f"{option} {output}: is there already, and heedful did not write it or it was changed since; name another "
            "file, or replace it with --force"
        )


@contextmanager
def writing_folder(folder: Path, option: str) -> Iterator[Path]:
    """Give the folder that a model is written to: a new or empty one, or one that heedful wrote and nobody changed.

    With `--force` it may be any other: then a folder with a temporary name is given, which takes its place at the end.

    Raises:
        InputError: The folder holds anything else, and `--force` is not given; or the folder is a file, or holds the
            current folder or that of the user.
        RunError: Writing failed.
    """
    from heedful.storage.atomic import atomic_folder, named_write_errors
    from heedful.storage.manifest import is_as_written

    refuse_file_in_the_way(folder, f"{option} {folder}")
    for place in (Path.cwd(), Path.home()):
        if place.is_relative_to(folder.resolve()):
            raise InputError(f"{option} {folder}: holds {place} and cannot be replaced as a whole; name a folder in it")
    if not folder.exists() or not any(folder.iterdir()) or is_as_written(folder):
        yield folder
    elif REPLACES.get():
        with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
            yield writer.path
    else:
        raise InputError(
            f"{option} {folder}: is there already, and holds something other than a model as heedful wrote it; name a "
            "folder that is free, or give --force, which removes all that is in it"
        )


@contextmanager
def writing(path: Path | None) -> Iterator[BinaryIO]:
    """Open an output file, which gets its name when all is written; or a device, a pipe or standard output.

    Raises:
        RunError: writing failed; nothing is left of the file.
        Exit: nobody reads standard output any more, as with `| head`.
    """
    from heedful.storage.atomic import atomic_file, is_stream, open_stream
    from heedful.storage.written_files import note_written

    try:
        if path is None:
            yield sys.stdout.buffer
        elif is_stream(path):
            with open_stream(path) as stream:
                yield stream
        else:
            with atomic_file(path) as stream:
                yield stream
            note_written(path)
    except OSError as error:
        if path is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more at its end
        if isinstance(error, BrokenPipeError):
            raise typer.Exit from error
        raise RunError(f"cannot write {path or 'standard output'}: {error.strerror or error}") from error


def warn_of_missing_glyphs(what: str, missing: Iterable[str]) -> None:
    """Warn on standard error of characters that no installed font has, so that a picture has numbers instead."""
    if characters := " ".join(c if c.isprintable() else ascii(c).strip("'") for c in sorted(missing)):
        typer.echo(
            f"{what} with {characters} are drawn as their number, as no font here has these characters; install one "
            "that does, such as Noto Sans CJK",
            err=True,
        )


def print_table(table: "Table") -> None:
    """Print a table to standard output in all its width: a narrow terminal wraps its lines, and no number is cut."""
    from rich.console import Console

    console = Console(highlight=False)
    whole = console.measure(table, options=console.options.update(width=WIDEST)).maximum
    console.width = max(console.width, whole)
    console.print(table)


class Results:
    """Writer of a command's results for input lines; flushes each result, and counts lines with all results.

    Args:
        stream: The binary stream to write to.
        each: Results for a line.
    """

    def __init__(self, stream: BinaryIO, each: int = 1) -> None:
        self.stream = stream
        self._each = each
        self._written = self._bytes = 0
        self._whole = (0, 0)  # lines whose results are all written, and the bytes of these results

    def begin(self, header: str | None) -> None:
        """Write the header of a table, and a line feed, before all results; None: there is not one."""
        if header is not None:
            self._put(f"{header}\n")

    def write(self, result: str) -> None:
        """Write a result of a command, and a line feed."""
        self.write_parts([result])

    def write_parts(self, parts: Iterable[str]) -> None:
        """Write a result of a command part by part as it comes, and a line feed."""
        for part in parts:
            self._put(part)
        self._put("\n")
        self._written += 1
        if self._written % self._each == 0:
            self._whole = (self._written // self._each, self._bytes)

    @property
    def lines(self) -> int:
        """Number of input lines whose results are all written."""
        return self._whole[0]

    def keep_whole(self, path: Path) -> None:
        """Rename the unfinished output file to `path`, cut after the last input line whose results are all written."""
        self.stream.truncate(self._whole[1])
        Path(self.stream.name).replace(path)

    def _put(self, text: str) -> None:
        data = text.encode(errors="surrogateescape")  # names of files may hold bytes that are no UTF-8
        self.stream.write(data)
        self.stream.flush()
        self._bytes += len(data)


def json_of_files(facts: dict[str, Any] | list[dict[str, Any]]) -> str:
    """Format facts about files as a line of JSON; bytes of their names that are no UTF-8 are escaped."""
    return json.dumps(facts, ensure_ascii=False).encode(errors="backslashreplace").decode()


@contextmanager
def writing_results(path: Path | None, source: Path | None, each: int = 1, unit: str = "line") -> Iterator[Results]:
    """Open a file or a stream for results; after Ctrl-C, finished results are in a file that ends in .part.

    Args:
        path: The file, which gets its name when all is written; or a device or a pipe; None: standard output.
        source: The file that is read, for the message; None: there is no such file.
        each: Results for a line.
        unit: The unit of input, for the message: "line", or "row" of a table.

    Raises:
        RunError: writing failed; nothing is left of the file.
        Exit: nobody reads standard output any more, as with `| head`.
        Interrupted: the user pressed Ctrl-C.
    """
    with writing(path) as stream:
        results = Results(stream, each)
        try:
            yield results
        except KeyboardInterrupt as error:
            raise Interrupted(interrupted(results, path, source, unit)) from error


def interrupted(results: Results, path: Path | None, source: Path | None, unit: str = "line") -> str:
    """Keep the finished results of an interrupted command; return a message with their place and how to go on."""
    part = free_name(path)
    if not results.lines:
        return f"interrupted before the first {unit} was done{'; nothing is written' if part else ''}"
    lines = f"{results.lines:,} {unit}s" if results.lines > 1 else unit
    rest = f"from {unit} {results.lines + 1:,} of {source or 'the input'} on"
    if part is None:
        return f"interrupted; the first {lines} are done; to go on, run the command on the rest, {rest}"
    results.keep_whole(part)
    return (
        f"interrupted; {part} has the results of the first {lines}, and {path} is as it was; to go on, run the command "
        f"on the rest, {rest}, and join both results"
    )


def free_name(path: Path | None) -> Path | None:
    """Find a free name for the finished part of a file: ending in .part or, if that is taken, .part2 and so on.

    It is beside the file, or beside what a symbolic link leads to; None for standard output, a device or a pipe.
    """
    from heedful.storage.atomic import is_stream

    if path is None or is_stream(path):
        return None
    path = path.resolve() if path.is_symlink() else path
    names = (path.with_name(f"{path.name}.part{number if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not name.exists())
