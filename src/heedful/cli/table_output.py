r"""Answers of commands as a table, .csv, .tsv or .jsonl by the output's name, or as lines; and the escapes of lines.

A table has the columns of the input, as they are, and those of the answer after them. A row of a .tsv file is one line
without quotes, so a tab or a line end inside a cell is written there as \t, \n or \r, and that is reported.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.output import Results, writing_results
from heedful.cli.tables import GivenTexts
from heedful.data.readers.names import MISSING
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.whole_rows import WholeRow

TABLES = (".csv", ".tsv", ".jsonl")

# A backslash is doubled where it would be read as an escape otherwise, so that a reader gets back every text exactly.
OF_LINES = re.compile(r"\\(?=[\\nr\n\r])|[\n\r]")
OF_CELLS = re.compile(r"\\(?=[\\nrt\n\r\t])|[\n\r\t]")
BREAKS = re.compile(r"[\t\n\r]")
SPELLED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    r"""Write a text as one line: a line feed becomes \n, a carriage return \r, and a backslash before n, r or \ \\."""
    return OF_LINES.sub(lambda found: SPELLED[found[0]], text)


def one_cell(text: str) -> str:
    r"""Write a text as one cell of a line with tabs between its cells: as `one_line`, and a tab becomes \t."""
    return OF_CELLS.sub(lambda found: SPELLED[found[0]], text)


def is_table_output(output: Path | None) -> bool:
    """True if the name of an output file asks for a table: it ends in .csv, .tsv or .jsonl."""
    return output is not None and output.suffix.lower() in TABLES


def check_json_output(output: Path | None, *, as_json: bool) -> None:
    """Refuse the lines of --json for an output file whose name asks for another table.

    Raises:
        InputError: `output` ends in .csv or .tsv, and lines of JSON are to be written.
    """
    if as_json and output is not None and is_table_output(output) and output.suffix.lower() != ".jsonl":
        raise InputError(
            f"--output {output}: the name asks for a table, and --json for an object a line; leave --json out, or give "
            "a name that ends in .jsonl"
        )


class TableRows:
    """Rows of a table that a command writes, as lines.

    Args:
        ending: ".csv", ".tsv" or ".jsonl".
        given: The names of the input's columns.
        answers: The names of the answers' columns. One that the input has, too, gets "predicted_" in front.
        separator: What separates the columns of a .csv file.

    Attributes:
        escaped: The number of cells so far that a .tsv file cannot hold as they are.
    """

    def __init__(self, ending: str, given: Sequence[str], answers: Sequence[str], separator: str = ",") -> None:
        self.ending = ending
        self.separator = separator
        self.given = given
        self.answers = answers
        self.columns = list(given)
        for name in answers:
            self.columns.append(free_name(name, self.columns))
        self.escaped = 0

    def header(self) -> str | None:
        """Return the line of the header; None for .jsonl, which names the columns in each row."""
        return None if self.ending == ".jsonl" else self._line(self.columns)

    def row(self, cells: Sequence[object], answer: Mapping[str, object]) -> str:
        """Return a row without a line feed at its end: the cells of the input's columns, and the answer by column."""
        values = [*cells, *(answer[name] for name in self.answers)]
        if self.ending == ".jsonl":
            named = {name: value for name, value in zip(self.columns, values, strict=True) if value is not MISSING}
            return json.dumps(named, ensure_ascii=False).encode(errors="backslashreplace").decode()
        return self._line([spelled(value) for value in values])

    def _line(self, cells: Sequence[str]) -> str:
        if self.ending == ".csv":
            line = io.StringIO()
            csv.writer(line, delimiter=self.separator, lineterminator="\r\n").writerow(
                cells
            )  # these are what it quotes cells for
            return line.getvalue().removesuffix("\r\n")
        broken = [BREAKS.search(cell) is not None for cell in cells]
        self.escaped += sum(broken)
        return "\t".join(one_cell(cell) if breaks else cell for cell, breaks in zip(cells, broken, strict=True))


def free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name of a column, with "predicted_" in front as often as it takes to be a new one."""
    while name in taken:
        name = f"predicted_{name}"
    return name


def spelled(value: object) -> str:
    """Spell the value of a cell for .csv and .tsv: a text as it is, anything else as JSON, nothing as an empty text."""
    if value is None or value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Answers:
    """Writer of the answers to rows of input: as rows of a table, or each as one line."""

    def __init__(self, results: Results, table: TableRows | None) -> None:
        self.results = results
        self.table = table

    @property
    def lines(self) -> int:
        """Number of input rows whose answers are all written."""
        return self.results.lines

    def write(self, given: "WholeRow", line: str, answer: Mapping[str, object]) -> None:
        """Write an answer: `line` where the output is lines, and `answer`, by column, where it is a table."""
        self.results.write(self.table.row(given.cells, answer) if self.table else line)

    def write_file(self, file: str | Path, text: str, answer: Mapping[str, object]) -> None:
        """Write an answer about a file: the file, a tab and a text where the output is lines, else a row of a table."""
        name = str(file)
        line = f"{one_cell(name)}\t{one_line(text)}"
        self.results.write(self.table.row([name], answer) if self.table else line)

    def write_line(self, line: str) -> None:
        """Write an answer that has a form of its own, such as JSON or subtitles."""
        self.results.write(line)


@contextmanager
def writing_file_answers(output: Path | None, columns: Sequence[str]) -> Iterator[Answers]:
    """Open the output of a command that answers about files: lines with a file, a tab and a text, or a table.

    Args:
        output: The file to write; None: standard output, which gets lines.
        columns: The names of the answers' columns, after "file"; none: lines are written whatever the name is.

    Raises:
        RunError, Exit, Interrupted: As in `writing_results`.
    """
    with writing_answers(output, None, GivenTexts(iter(()), None, "file", ("file",)), columns) as answers:
        yield answers


@contextmanager
def writing_answers(
    output: Path | None, source: Path | None, given: GivenTexts, columns: Sequence[str], *, each: int = 1
) -> Iterator[Answers]:
    """Open the output of a command that answers texts; its name decides if it is a table.

    Args:
        output: The file to write; None: standard output, which gets lines.
        source: The file that is read, for messages.
        given: The input.
        columns: The names of the answers' columns; none: lines are written whatever the name is, such as with --json.
        each: Answers to a row of the input.

    Raises:
        RunError, Exit, Interrupted: As in `writing_results`.
    """
    with writing_results(output, source, each, given.unit) as results:
        table = None
        if output is not None and columns and is_table_output(output):
            table = TableRows(output.suffix.lower(), given.columns, columns, given.separator)
            results.begin(table.header())
        yield Answers(results, table)
    if table and table.escaped:
        typer.echo(
            f"heedful: {output}: {counted(table.escaped, 'cells')} with tabs or line ends, which .tsv cannot hold, "
            "written as \\t, \\n and \\r; a name that ends in .csv or .jsonl keeps them as they are",
            err=True,
        )
