"""Output of a command: a file that is written as a whole or not at all, or standard output."""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from heedful.cli.options import refuse_file_in_the_way
from heedful.data.readers.rows import MISSING
from heedful.errors import InputError, Interrupted, RunError
from heedful.storage.atomic import atomic_file, atomic_folder, is_stream, named_write_errors, open_stream
from heedful.storage.paths import likely
from heedful.storage.written_files import is_foreign, note_written
from heedful.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.cli.inputs import TextRows

WIDEST = 1_000  # columns of a table
REPLACES: ContextVar[bool] = ContextVar("REPLACES", default=False)  # whether the command was given --force


def check_output(output: Path | None, *inputs: Path | None, option: str = "--output", kept: bool = False) -> None:
    """Make sure that an output file can be written, and overwrites neither an input file nor anybody else's file."""
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
    """
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
    """Open an output file, which gets its name when all is written; or a device, a pipe or standard output."""
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


def check_picture(path: Path, option: str, *inputs: Path) -> None:
    """Refuse a picture that cannot be drawn: matplotlib is missing, or the ending is wrong; see `check_output`."""
    try:
        from heedful.inspector.plots import FORMATS
    except ModuleNotFoundError as error:
        raise InputError(f'drawing needs {error.name}: pip install "heedful[plot]"') from error
    if path.suffix not in FORMATS:
        raise InputError(f"{option} {path}: a picture's name ends in {' or '.join(FORMATS)}")
    check_output(path, *inputs, option=option)


def draw_picture(path: Path, draw: Callable[[Path], Iterable[str]], words: str, title: str) -> None:
    """Draw a picture into a file, and warn of `words` with characters that no font has, so that they are numbers."""
    try:
        missing = draw(path)
        note_written(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    typer.echo(f"{path}: {title}", err=True)
    if characters := " ".join(c if c.isprintable() else ascii(c).strip("'") for c in sorted(missing)):
        typer.echo(
            f"{words} with {characters} are drawn as their number, as no font here has these characters; install one "
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


# A backslash is doubled where it would be read as an escape otherwise, so that a reader gets back every text exactly.
OF_LINES = re.compile(r"\\(?=[\\nr\n\r])|[\n\r]")
OF_CELLS = re.compile(r"\\(?=[\\nrt\n\r\t])|[\n\r\t]")
SPELLED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    r"""Write a text as one line: a line feed becomes \n, a carriage return \r, and a backslash before n, r or \ \\."""
    return OF_LINES.sub(lambda match: SPELLED[match[0]], text)


def one_cell(text: str) -> str:
    r"""Write a text as one cell of a line with tabs between its cells: as `one_line`, and a tab becomes \t."""
    return OF_CELLS.sub(lambda match: SPELLED[match[0]], text)


def file_line(file: str | Path, text: str) -> str:
    return f"{one_cell(str(file))}\t{one_line(text)}"


def json_of_files(facts: dict[str, Any] | list[dict[str, Any]]) -> str:
    """Format facts about files as a line of JSON; bytes of their names that are no UTF-8 are escaped."""
    return json.dumps(facts, ensure_ascii=False).encode(errors="backslashreplace").decode()


def is_table_output(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() in (".csv", ".tsv", ".jsonl")


def check_json_output(output: Path | None, *, as_json: bool) -> None:
    """Refuse the lines of --json for an output file whose name asks for another table."""
    if as_json and output is not None and is_table_output(output) and output.suffix.lower() != ".jsonl":
        raise InputError(
            f"--output {output}: the name asks for a table, and --json for an object a line; leave --json out, or give "
            "a name that ends in .jsonl"
        )


class TableRows:
    """Rows of a table that a command writes, as lines.

    Args:
        ending: ".csv", ".tsv" or ".jsonl".
        inputs: The names of the input's columns.
        answers: The names of the answers' columns. One that the input has, too, gets "predicted_" in front.
        separator: What separates the columns of a .csv file.

    Attributes:
        escaped: The number of cells so far that a .tsv file cannot hold as they are.
    """

    def __init__(self, ending: str, inputs: Sequence[str], answers: Sequence[str], separator: str = ",") -> None:
        self.ending = ending
        self.separator = separator
        self.answers = answers
        self.columns = list(inputs)
        for name in answers:
            column = name
            while column in self.columns:
                column = f"predicted_{column}"
            self.columns.append(column)
        self.escaped = 0

    def header(self) -> str | None:
        """Return the line of the header; None for .jsonl, which names the columns in each row."""
        return None if self.ending == ".jsonl" else self._line(self.columns)

    def row(self, cells: Sequence[object], answer: Mapping[str, object]) -> str:
        """Return a row without a line feed at its end: the cells of the input's columns, and the answer by column."""
        values = [*cells, *(answer[name] for name in self.answers)]
        if self.ending == ".jsonl":
            named = {name: value for name, value in zip(self.columns, values, strict=True) if value is not MISSING}
            return json_of_files(named)
        return self._line([spelled(value) for value in values])

    def _line(self, cells: Sequence[str]) -> str:
        if self.ending == ".csv":
            line = io.StringIO()
            # The line end is one that cells are quoted for.
            csv.writer(line, delimiter=self.separator, lineterminator="\r\n").writerow(cells)
            return line.getvalue().removesuffix("\r\n")
        broken = [re.search(r"[\t\n\r]", cell) is not None for cell in cells]
        self.escaped += sum(broken)
        return "\t".join(one_cell(cell) if breaks else cell for cell, breaks in zip(cells, broken, strict=True))


def spelled(value: object) -> str:
    """Spell the value of a cell for .csv and .tsv: a text as it is, anything else as JSON, nothing as an empty text."""
    if value is None or value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Results:
    """Writer of a command's results for rows of input, `each` for a row; flushes each, and counts whole rows."""

    def __init__(self, stream: BinaryIO, each: int = 1, table: TableRows | None = None) -> None:
        self.stream = stream
        self.table = table
        self._each = each
        self._written = self._bytes = 0
        self._whole = (0, 0)  # rows whose results are all written, and the bytes of these results
        if table and (header := table.header()) is not None:
            self._put(f"{header}\n")

    @property
    def lines(self) -> int:
        """Number of input rows whose results are all written."""
        return self._whole[0]

    def write(self, line: str) -> None:
        self.write_parts([line])

    def write_answer(self, cells: Sequence[object], line: str, answer: Mapping[str, object]) -> None:
        """Write the answer to a row of input: a line or, in a table, the cells of the row and those of the answer."""
        self.write(self.table.row(cells, answer) if self.table else line)

    def write_parts(self, parts: Iterable[str]) -> None:
        """Write a result of a command part by part as it comes, and a line feed."""
        for part in parts:
            self._put(part)
        self._put("\n")
        self._written += 1
        if self._written % self._each == 0:
            self._whole = (self._written // self._each, self._bytes)

    def keep_whole(self, path: Path) -> None:
        """Rename the unfinished output file to `path`, cut after the last input row whose results are all written."""
        self.stream.truncate(self._whole[1])
        Path(self.stream.name).replace(path)

    def _put(self, text: str) -> None:
        data = text.encode(errors="surrogateescape")  # names of files may hold bytes that are no UTF-8
        self.stream.write(data)
        self.stream.flush()
        self._bytes += len(data)


@contextmanager
def writing_answers(
    output: Path | None, source: Path | None, rows: "TextRows", columns: Sequence[str], *, each: int = 1
) -> Iterator[Results]:
    """Open the output for the answers to rows of input; its name decides if it is a table.

    `columns` are the names of the answers' columns; none: lines are written whatever the name is, such as with --json.
    """
    table = None
    if output is not None and columns and is_table_output(output):
        table = TableRows(output.suffix.lower(), rows.columns, columns, rows.separator)
    with writing_results(output, source, each, rows.unit, table) as results:
        yield results
    if table and table.escaped:
        typer.echo(
            f"heedful: {output}: {counted(table.escaped, 'cells')} with tabs or line ends, which .tsv cannot hold, "
            "written as \\t, \\n and \\r; a name that ends in .csv or .jsonl keeps them as they are",
            err=True,
        )


@contextmanager
def writing_results(
    path: Path | None, source: Path | None, each: int = 1, unit: str = "line", table: TableRows | None = None
) -> Iterator[Results]:
    """Open a file or a stream for results; after Ctrl-C, finished results are in a file that ends in .part.

    `source` is the file that is read and `unit` that of the input ("line", or "row" of a table), for the message.
    """
    with writing(path) as stream:
        results = Results(stream, each, table)
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
    if path is None or is_stream(path):
        return None
    path = path.resolve() if path.is_symlink() else path
    names = (path.with_name(f"{path.name}.part{number if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not name.exists())
