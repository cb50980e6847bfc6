"""Input texts of commands: plain lines, or columns of .tsv, .csv and .jsonl tables, with or without labels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import CorpusConfig, Recipe
    from heedful.data.readers.corpus import TableRow
    from heedful.data.readers.text_columns import WantedTexts
    from heedful.data.readers.whole_rows import WholeRow

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
    from heedful.data.readers.unlabelled import is_table
    from heedful.data.readers.whole_rows import WholeRow

    if source is None or not is_table(source):
        return GivenTexts((WholeRow(row.line, row.texts, ("\t".join(row.texts),)) for row in given), None, "line")
    return table_texts(source, wanted)


def table_texts(source: Path, wanted: "WantedTexts") -> GivenTexts:
    """Read the texts in some columns of a table; all rows are read once beforehand, so that errors show at once.

    Raises:
        InputError: the table cannot be read, has no such column, or it is in doubt which column holds the texts.
    """
    from heedful.data.readers.filters import DropReport
    from heedful.data.readers.text_columns import choose_columns
    from heedful.data.readers.unlabelled import read_texts
    from heedful.data.readers.whole_rows import names_of_cells, read_whole_rows

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
    from heedful.data.readers.separators import CHARACTERS, separator_of

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
    from heedful.data.readers.unlabelled import is_table

    if any(fields) and (file is None or not is_table(file)):
        named = ", ".join(filter(None, fields))
        lacks = f"there is no {option} FILE" if file is None else f"{option} {file} is no table"
        raise InputError(
            f"columns are named ({named}), but {lacks}; give one whose name ends in .tsv, .csv or .jsonl, say with "
            "--input-format which of these it is, or leave the names of columns out"
        )
