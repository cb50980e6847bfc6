"""Tables of inputs and of answers: columns read, and rows written with the input's columns."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.output import Results, writing_results
from heedful.data.readers.rows import MISSING
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import CorpusConfig, Recipe
    from heedful.data.readers.corpus import TableRow
    from heedful.data.readers.labelled import WholeRow
    from heedful.data.readers.text_columns import WantedTexts


LINE = "text"  # the name of the column that holds the line of a plain text file, where a table is written


@dataclass(frozen=True)
class GivenTexts:
    """Input texts of a command.

    Attributes:
        rows: The texts of each row, with all cells of the row.
        count: The number of rows, if known.
        unit: "line", or "row" of a table, for messages.
        columns: The names of the cells.
        separator: What separates the columns of a .csv file that is read.
    """

    rows: Iterator["WholeRow"]
    count: int | None
    unit: str
    columns: tuple[str, ...] = (LINE,)
    separator: str = ","


def given_texts(given: "Iterator[TableRow]", source: Path | None, wanted: "WantedTexts") -> GivenTexts:
    """Read the input texts in some columns of a file, if the file is a table; otherwise use the rows given.

    Raises:
        InputError: the table cannot be read, has no such column, or it is in doubt which column holds the texts.
    """
    from heedful.data.readers.labelled import WholeRow, is_table

    if source is None or not is_table(source):
        return GivenTexts((WholeRow(row.line, row.texts, ("\t".join(row.texts),)) for row in given), None, "line")
    return table_texts(source, wanted)


def table_texts(source: Path, wanted: "WantedTexts") -> GivenTexts:
    """Read the texts in some columns of a table; all rows are read once beforehand, so that errors show at once.

    Raises:
        InputError: the table cannot be read, has no such column, or it is in doubt which column holds the texts.
    """
    from heedful.data.readers.filters import DropReport
    from heedful.data.readers.labelled import names_of_cells, read_texts, read_whole_rows
    from heedful.data.readers.text_columns import choose_columns

    chosen = choose_columns(source, wanted)
    report = DropReport()
    first, count = None, 0
    for row in read_texts(source, chosen.fields, report, turns=wanted.turns):
        first, count = first or row.line, count + 1
    if chosen.guessed:
        texts = "text is" if len(chosen.fields) == 1 else "texts are"
        typer.echo(
            f"heedful: {source}: the {texts} read from {', '.join(map(named, chosen.fields))}; name another with "
            f"{wanted.option}",
            err=True,
        )
    elif "header" in report.counts and any(map(str.isdecimal, chosen.fields)):
        typer.echo(f"heedful: {source}: its first line is taken for a header, and is not read", err=True)
    columns = names_of_cells(source, first)
    rows = read_whole_rows(source, chosen.fields, columns, turns=wanted.turns)
    return GivenTexts(rows, count, "row", columns, separator_of_csv(source))


def separator_of_csv(source: Path) -> str:
    """Return what separates the columns of a .csv file; a comma for other tables."""
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import CHARACTERS, separator_of

    return CHARACTERS[separator_of(source, "replace")] if ending_of(source) == ".csv" else ","


def named(field: str) -> str:
    """Name a column for messages, by its name or its number."""
    return f"column {field}" if field.isdecimal() else f"column {field!r}"


def whole_lines(lines: Iterable[str]) -> Iterator["TableRow"]:
    """Turn each line of a plain text file into a table row with one text."""
    from heedful.data.readers.corpus import TableRow

    return (TableRow(number, (line,)) for number, line in enumerate(lines, start=1))


def wanted_texts(recipe: "Recipe | None", *named: str | None, fields: tuple[str, ...] | None = None) -> "WantedTexts":
    """Return what a recipe says about the texts that a model reads from a table.

    Args:
        recipe: The recipe of the model; None: a new one.
        named: The columns that options name, one for each text; None where an option is not given.
        fields: The recipe's names of the columns; None: its `source_field`.
    """
    from heedful.config.schema import Recipe
    from heedful.data.readers.text_columns import WantedTexts

    recipe = recipe or Recipe()
    columns, data = columns_of(recipe), recipe.data
    own = (columns.source_field,) if fields is None else fields
    target = None if columns.target_field in own else columns.target_field
    known = (own, named or (None,) * len(own), data.labels, target, data.source_language)
    return WantedTexts(*known, turns=recipe.task == "dialogue")


def columns_of(recipe: "Recipe") -> "CorpusConfig":
    """Return the corpus of a recipe, test, valid or train, whose column names other tables are expected to have."""
    from heedful.config.schema import CorpusConfig

    data = recipe.data
    return next((corpus for corpus in (data.test, data.valid, *data.train) if corpus), CorpusConfig(source=""))


def check_columns(file: Path | None, option: str, *fields: str | None) -> None:
    """Refuse column names for an input file that is no table; `option` is the option that gives the file.

    Raises:
        InputError: columns are named, and the file is no table or is missing.
    """
    from heedful.data.readers.labelled import is_table

    if any(fields) and (file is None or not is_table(file)):
        named = ", ".join(filter(None, fields))
        lacks = f"there is no {option} FILE" if file is None else f"{option} {file} is no table"
        raise InputError(
            f"columns are named ({named}), but {lacks}; give one whose name ends in .tsv, .csv or .jsonl, say with "
            "--input-format which of these it is, or leave the names of columns out"
        )


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
