"""Output of a command: warnings, plots, and results; a file is written completely or not at all."""

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
from typing import TYPE_CHECKING, BinaryIO

import typer

from heedful.cli.options import name_copied, reject_file_in_the_way
from heedful.data.readers.rows import MISSING
from heedful.errors import InputError, Interrupted, RunError
from heedful.storage.atomic import atomic_file, atomic_folder, is_stream, named_write_errors, open_stream
from heedful.storage.paths import likely
from heedful.storage.written_files import is_foreign, note_written
from heedful.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.cli.inputs import TextRows

MAX_TABLE_WIDTH = 1_000  # characters
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl")
REPLACES: ContextVar[bool] = ContextVar("REPLACES", default=False)  # whether the command was called with --force


def warn(message: str) -> None:
    """Print a warning to standard error."""
    typer.echo(f"heedful: {name_copied(message)}", err=True)


def check_output(
    output: Path | None,
    *inputs: Path | None,
    option: str = "--output",
    updates: bool = False,
    as_json: bool = False,
) -> None:
    """Reject an output file that cannot be written, that is also an input, or that is not heedful's own.

    With `--force` or `updates`, a file that heedful did not write, or that was changed since, is accepted.

    Args:
        output: The file; None for standard output.
        inputs: The files that the command reads.
        option: The option for the output file, for messages.
        updates: True if the file may exist, because the command reads it before it writes it.
        as_json: True if the command writes lines of JSON, which the file name must not contradict.
    """
    if output is None:
        return
    if as_json and is_table_output(output) and output.suffix.lower() != ".jsonl":
        raise InputError(
            f"--output {output}: the file name asks for a table, but --json for one object per line; leave --json "
            "out, or choose a name that ends in .jsonl"
        )
    if output.is_dir():
        raise InputError(f"{option} {output}: is a folder; give a file in an existing folder")
    reject_file_in_the_way(output.parent, f"{option} {output}")
    if not output.parent.is_dir():
        remedy = likely(output.parent, "create it, or give a file in an existing folder", os.path.isdir)
        raise InputError(f"{option} {output}: there is no folder {output.parent}; {remedy}")
    for source in inputs:
        if source and source.exists() and output.exists() and output.samefile(source):
            raise InputError(f"{option} {output} is also the input and would be overwritten; choose another file")
    if not updates and is_foreign(output) and not REPLACES.get():
        raise InputError(
            f"{option} {output}: already exists, but was not written by heedful or was changed since; choose another "
            "file, or replace it with --force"
        )


@contextmanager
def writing_folder(folder: Path, source: Path) -> Iterator[Path]:
    """Yield the folder to write a model to, which must be new, empty, or written by heedful and not changed since.

    With `--force`, any other folder is accepted: a folder with a temporary name is yielded, and replaces the old one at
    the end. The folder must not contain `source`, the model folder that the command reads.
    """
    from heedful.storage.complete_folder import CARD, is_complete

    reject_file_in_the_way(folder, str(folder))
    for inner in (Path.cwd(), Path.home()):
        if inner.is_relative_to(folder.resolve()):
            raise InputError(f"{folder}: contains {inner}, so it cannot be replaced; choose a folder in it")
    if source.resolve().is_relative_to(folder.resolve()):
        verb = "is" if source.resolve() == folder.resolve() else "contains"
        raise InputError(f"{folder}: {verb} the model that is read; choose another folder")
    is_own = is_complete(folder, allow_others=False) and not is_foreign(folder / CARD)
    if not folder.exists() or not any(folder.iterdir()) or is_own:
        yield folder
    elif REPLACES.get():
        with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
            yield writer.path
        note_written(folder / CARD)  # which was written under a temporary name
    else:
        raise InputError(
            f"{folder}: already exists, and is not a model folder that heedful wrote, or was changed since; choose a "
            "new folder, or give --force, which removes everything in it"
        )


@contextmanager
def writing(path: Path | None) -> Iterator[BinaryIO]:
    """Open an output file, a device, a pipe or standard output; a file gets its name once everything is written."""
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
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again on exit
        if isinstance(error, BrokenPipeError):
            raise typer.Exit from error
        raise RunError(f"cannot write {path or 'to standard output'}: {error.strerror or error}") from error


def check_plot(path: Path, option: str, *inputs: Path) -> None:
    """Reject a plot if matplotlib is missing, the file extension is wrong, or the file fails `check_output`."""
    try:
        from heedful.inspector.plots import FORMATS
    except ModuleNotFoundError as error:
        raise InputError(f'plots need {error.name}: pip install "heedful[plot]"') from error
    if path.suffix not in FORMATS:
        raise InputError(f"{option} {path}: the name of an image must end in {' or '.join(FORMATS)}")
    check_output(path, *inputs, option=option)


def draw_plot(path: Path, draw: Callable[[Path], Iterable[str]], words: str, title: str) -> None:
    """Draw a plot to a file, and warn about characters that no installed font has.

    `words` names what contains such characters, for example "Words" or "Classes".
    """
    try:
        missing = draw(path)
        note_written(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    typer.echo(f"{path}: {title}", err=True)
    if characters := " ".join(c if c.isprintable() else ascii(c).strip("'") for c in sorted(missing)):
        typer.echo(
            f"{words} with {characters} are shown as numbers, because no installed font has these characters; "
            "install one that does, such as Noto Sans CJK",
            err=True,
        )


def print_table(table: "Table") -> None:
    """Print a table to standard output at full width: a narrow terminal wraps its lines, but no number is cut."""
    from rich.console import Console

    console = Console(highlight=False)
    width = console.measure(table, options=console.options.update(width=MAX_TABLE_WIDTH)).maximum
    console.width = max(console.width, width)
    console.print(table)


# A backslash is doubled only where it would be read as an escape, so that every text can be recovered exactly.
LINE_ESCAPES = re.compile(r"\\(?=[\\nr\n\r])|[\n\r]")
CELL_ESCAPES = re.compile(r"\\(?=[\\nrt\n\r\t])|[\n\r\t]")
ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    r"""Write a text as one line: a line feed becomes \n, a carriage return \r, and a backslash before n, r or \ \\."""
    return LINE_ESCAPES.sub(lambda match: ESCAPED[match[0]], text)


def one_cell(text: str) -> str:
    r"""Write a text as one cell of a tab-separated line: like `one_line`, and a tab becomes \t."""
    return CELL_ESCAPES.sub(lambda match: ESCAPED[match[0]], text)


def to_json(value: object) -> str:
    """Format a value as a line of JSON; file name bytes that are not UTF-8 are escaped."""
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()


def is_table_output(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() in TABLE_ENDINGS


class TableRows:
    """Formatter for the rows of a table that a command writes.

    Args:
        ending: ".csv", ".tsv" or ".jsonl".
        inputs: The column names of the input.
        answers: The column names of the answers. A name that the input also has gets the prefix "predicted_".
        separator: The column separator of a .csv file.

    Attributes:
        escaped: The number of cells so far that had to be escaped in a .tsv file.
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
        """Return the header line; None for .jsonl, which names the columns in each row."""
        return None if self.ending == ".jsonl" else self._line(self.columns)

    def row(self, cells: Sequence[object], answer: Mapping[str, object]) -> str:
        """Return a row without its final line feed.

        Args:
            cells: The values in the input's columns.
            answer: The value of each answer column, by name.
        """
        values = [*cells, *(answer[name] for name in self.answers)]
        if self.ending == ".jsonl":
            return to_json({k: value for k, value in zip(self.columns, values, strict=True) if value is not MISSING})
        # In .csv and .tsv files, strings are not JSON but plain text, None is an empty cell, and other values are JSON.
        values = ["" if value is None or value is MISSING else value for value in values]
        return self._line([v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values])

    def _line(self, cells: Sequence[str]) -> str:
        if self.ending == ".csv":
            line = io.StringIO()
            # The writer quotes cells that contain a character of the line terminator.
            csv.writer(line, delimiter=self.separator, lineterminator="\r\n").writerow(cells)
            return line.getvalue().removesuffix("\r\n")
        broken = [re.search(r"[\t\n\r]", cell) is not None for cell in cells]
        self.escaped += sum(broken)
        return "\t".join(one_cell(cell) if breaks else cell for cell, breaks in zip(cells, broken, strict=True))


class Results:
    """Writer of a command's results, `each` for every input row; it flushes each result, and counts complete rows."""

    def __init__(self, stream: BinaryIO, each: int = 1, table: TableRows | None = None) -> None:
        self.stream = stream
        self.table = table
        self._each = each
        self._written = self._bytes = 0
        self._whole = (0, 0)  # rows whose results are all written, and the size of these results in bytes
        if table and (header := table.header()) is not None:
            self._put(f"{header}\n")

    @property
    def lines(self) -> int:
        """Number of input rows whose results are all written."""
        return self._whole[0]

    def write(self, line: str) -> None:
        self.write_parts([line])

    def write_answer(self, cells: Sequence[object], line: str, answer: Mapping[str, object]) -> None:
        """Write the answer for an input row: a line or, in a table, the cells of the row and those of the answer."""
        self.write(self.table.row(cells, answer) if self.table else line)

    def write_parts(self, parts: Iterable[str]) -> None:
        """Write a result part by part as the parts arrive, then a line feed."""
        for part in parts:
            self._put(part)
        self._put("\n")
        self._written += 1
        if self._written % self._each == 0:
            self._whole = (self._written // self._each, self._bytes)

    def _put(self, text: str) -> None:
        data = text.encode(errors="surrogateescape")  # file names may contain bytes that are not UTF-8
        self.stream.write(data)
        self.stream.flush()
        self._bytes += len(data)

    def keep_part(self, path: Path | None) -> Path | None:
        """Save the finished rows of an interrupted command to a file next to its output; return that file's path.

        The name ends in .part or, if that is taken, .part2 and so on. Without finished rows, nothing is written, but
        the path is still returned. Returns None for standard output, a device or a pipe.
        """
        if path is None or is_stream(path):
            return None
        path = path.resolve() if path.is_symlink() else path
        names = (path.with_name(f"{path.name}.part{number if number > 1 else ''}") for number in count(1))
        part = next(name for name in names if not name.exists())
        if self.lines:
            self.stream.truncate(self._whole[1])
            Path(self.stream.name).replace(part)
        return part


@contextmanager
def writing_results(
    path: Path | None,
    source: Path | None,
    each: int = 1,
    rows: "TextRows | None" = None,
    columns: Sequence[str] = (),
) -> Iterator[Results]:
    """Open a file or a stream for results; after Ctrl-C, finished results are kept in a file that ends in .part.

    Args:
        path: The output; it is a table if its name says so and there are `columns`.
        source: The file that the command reads, for messages.
        each: The number of results per input row.
        rows: The input rows; None if the input is lines.
        columns: The column names of the answers; if empty, as with --json, lines are written whatever the file's name.
    """
    table, unit = None, rows.unit if rows else "line"
    if path is not None and rows and columns and is_table_output(path):
        table = TableRows(path.suffix.lower(), rows.columns, columns, rows.separator)
    with writing(path) as stream:
        results = Results(stream, each, table)
        try:
            yield results
        except KeyboardInterrupt as error:
            part = results.keep_part(path)
            if not results.lines:
                end = "; nothing was written" if part else ""
                raise Interrupted(f"interrupted before the first {unit} was done{end}") from error
            finished = f"the first {f'{results.lines:,} {unit}s' if results.lines > 1 else unit}"
            rest = f"run the command on the rest of {source or 'the input'}, from {unit} {results.lines + 1:,} on"
            verb = "are" if results.lines > 1 else "is"
            message = f"interrupted; {finished} {verb} done; to continue, {rest}"
            if part:
                message = (
                    f"interrupted; {part} contains the results of {finished}, and {path} is unchanged; to continue, "
                    f"{rest}, and join both results"
                )
            raise Interrupted(message) from error
    if table and table.escaped:
        warn(
            f"{path}: tabs and line breaks in {counted(table.escaped, 'cells')} are written as \\t, \\n and \\r, "
            "because .tsv cannot represent them; .csv and .jsonl files keep them unchanged"
        )
