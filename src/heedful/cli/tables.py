"""Input texts of commands: plain lines, or columns of .tsv, .csv and .jsonl tables, with or without labels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import CorpusConfig, Recipe
    from heedful.data.readers.corpus import TableRow


@dataclass(frozen=True)
class GivenTexts:
    """Input texts of a command as rows, the number of rows if known, and their unit ("line" or "row") for messages."""

    rows: Iterator["TableRow"]
    count: int | None
    unit: str


def asked_of(given: Iterator["TableRow"], source: Path | None, fields: Sequence[str]) -> GivenTexts:
    """Read the input texts in some columns of a file, if the file is a table; otherwise use the rows given.

    Raises:
        InputError: the table cannot be read, or has no such column.
    """
    from heedful.data.readers.unlabelled import is_table

    if source is None or not is_table(source):
        return GivenTexts(given, None, "line")
    return table_rows(source, fields)


def table_rows(source: Path, fields: Sequence[str], option: str = "--source-field") -> GivenTexts:
    """Read the texts in some columns of a table; all rows are read once beforehand, so that errors show at once.

    Raises:
        InputError: the table cannot be read, or has no such column.
    """
    from heedful.data.readers.filters import DropReport
    from heedful.data.readers.unlabelled import read_texts

    report = DropReport()
    count = sum(1 for _ in read_texts(source, fields, report))
    if "header" in report.counts and fields[0].isdecimal():
        typer.echo(f"heedful: {source}: its first line is taken for a header, and is not read", err=True)
    elif "header" in report.counts:
        read = "first column is" if len(fields) == 1 else f"first {len(fields)} columns are"
        typer.echo(
            f"heedful: {source}: its first line is a header without {', '.join(map(repr, fields))}, so the {read} "
            f"read; name others with {option}",
            err=True,
        )
    return GivenTexts(read_texts(source, fields), count, "row")


def whole_lines(lines: Iterable[str]) -> Iterator["TableRow"]:
    """Turn each line of a plain text file into a table row with one text."""
    from heedful.data.readers.corpus import TableRow

    return (TableRow(number, (line,)) for number, line in enumerate(lines, start=1))


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
    from heedful.data.readers.unlabelled import is_table

    if any(fields) and (file is None or not is_table(file)):
        named = ", ".join(filter(None, fields))
        lacks = f"there is no {option} FILE" if file is None else f"{option} {file} is no table"
        raise InputError(
            f"columns are named ({named}), but {lacks}; give one whose name ends in .tsv, .csv or .jsonl, or leave "
            "the names of columns out"
        )
